"""A conversation as a tree of turns: what was asked, what was answered, which branch is shown.

Everything here is a frozen value or a pure function from one state to the next. Nothing is ever
overwritten or thrown away: another answer, a changed question, a continued answer are new turns
beside the old one, and what was deleted is only marked.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from llm.errors import LLMError
from llm.screen_figures import ScreenFigures
from llm.seen_text import seen
from llm.types import Finish, FromCache, Message, SamplingParams

TurnState = Literal["queued", "running", "ended"]
TitleBy = Literal["question", "model", "person"]

MAX_TITLE_CHARS = 80


@dataclass(frozen=True, slots=True)
class ConversationKey:
    """Whose conversation, and which. An id alone opens nothing.

    Args:
        owner: the signed-in person's id, or that of the one local person.
        conversation_id: unguessable, and still worth nothing to anybody but the owner.
    """

    owner: str
    conversation_id: str


def new_id() -> str:
    """An unguessable id for a conversation."""
    return secrets.token_urlsafe(16)


def could_be_id(text: str) -> bool:
    """Whether `new_id` may have given it."""
    return re.fullmatch(r"[\w-]{22}", text, re.ASCII) is not None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is known of a finished answer; None where the backend doesn't say.

    Args:
        left_out: how many of the oldest questions weren't told the model any more.
        cached: where the answer was taken from; None where the model gave it.
        waited_s: until the model read the question: in line, and for the model to be there.
        decode_s: from the first piece to the last.
        itl_p50_ms, itl_p95_ms: of the gaps between its pieces, by nearest rank.
        screen: how it went on the screen; None where the browser said nothing of it.
    """

    model: str
    finish: Finish
    server: str = ""
    ttft_s: float | None = None
    tokens_per_s: float | None = None
    left_out: int = 0
    reasoning_s: float | None = None
    cached: FromCache | None = None
    waited_s: float | None = None
    decode_s: float | None = None
    itl_p50_ms: float | None = None
    itl_p95_ms: float | None = None
    screen: ScreenFigures | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer. One of each, so they can neither be doubled nor get out of order.

    Args:
        turn_id: unique.
        question: as it was typed; empty where a model spoke first, in an imported conversation.
        backend: the backend's id: its kind, and for a server `vllm/` and the server's name.
        model: which of the backend's models is asked; empty leaves it to the backend.
        system_prompt: as it was when the question was asked.
        person: who asked, for the fairness of the queue.
        state: `queued` behind the turn before, `running` (in line or being answered), `ended`.
        text: the answer so far, or all of it.
        reasoning: what the model thought before it; shown, and never sent back.
        error: what went wrong, if something did; the text until then is kept.
        parent: the turn before; empty for a first one.
        continues: the turn whose answer this one goes on from; its text begins with that.
        created_s: when it was asked, seconds since 1970.
        deleted_s: when it was deleted or cleared away; None where it wasn't.
        runner: the process that answers it.
    """

    turn_id: str
    question: str
    backend: str
    params: SamplingParams
    system_prompt: str = ""
    person: str = ""
    model: str = ""
    state: TurnState = "queued"
    text: str = ""
    reasoning: str = ""
    receipt: Receipt | None = None
    error: LLMError | None = None
    parent: str = ""
    continues: str = ""
    created_s: float = 0.0
    deleted_s: float | None = None
    runner: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a list shows of a conversation.

    Args:
        title_by: who gave it: the first question, the model, or the person; each counts more than
            the one before.
        leaf: the last turn of the branch that is shown; empty before the first.
        updated_s: the last question, seconds since 1970.
        deleted_s: when it was deleted; None where it wasn't.
        import_mark: what tells that the same thing is imported again; empty where it was made here.
    """

    key: ConversationKey
    title: str = ""
    title_by: TitleBy = "question"
    pinned: bool = False
    created_s: float = 0.0
    updated_s: float = 0.0
    leaf: str = ""
    deleted_s: float | None = None
    import_mark: str = ""


@dataclass(frozen=True, slots=True)
class ConversationState:
    """A whole conversation at one moment.

    Args:
        turns: by their ids, oldest first, deleted ones too.
    """

    head: Conversation
    turns: Mapping[str, Turn] = field(default_factory=dict)

    def path(self) -> tuple[Turn, ...]:
        """The turns that are shown, oldest first."""
        return tuple(self._live_upwards(self.head.leaf))[::-1]

    def path_to(self, turn_id: str) -> tuple[Turn, ...]:
        """The turns that lead to this one and itself, oldest first."""
        return tuple(self._live_upwards(turn_id))[::-1]

    def variants(self) -> dict[str, tuple[str, ...]]:
        """For each shown turn, all that stand in its place, itself among them, oldest first."""
        children = self._children()
        before, found = "", {}
        for turn in self.path():
            here = children.get(before, ())
            # In a damaged tree the first that is shown may hang on what isn't shown.
            found[turn.turn_id] = here if turn.turn_id in here else (turn.turn_id,)
            before = turn.turn_id
        return found

    def newest_below(self, turn_id: str) -> str:
        """The last turn of the newest branch that goes through this one."""
        children = self._children()
        seen = {turn_id}  # a damaged tree may hold a ring
        while below := [one for one in children.get(turn_id, ()) if one not in seen]:
            turn_id = below[-1]
            seen.add(turn_id)
        return turn_id

    def live(self) -> tuple[Turn, ...]:
        """All turns that aren't deleted, oldest first."""
        return tuple(turn for turn in self.turns.values() if turn.deleted_s is None)

    def last_deleted_s(self) -> float | None:
        """When something was last deleted here; None where nothing is."""
        return max(
            (turn.deleted_s for turn in self.turns.values() if turn.deleted_s is not None),
            default=None,
        )

    def _live_upwards(self, turn_id: str) -> Iterator[Turn]:
        """From a turn to the first, leaving out what is deleted."""
        seen: set[str] = set()  # the same
        while (turn := self.turns.get(turn_id)) is not None and turn_id not in seen:
            seen.add(turn_id)
            if turn.deleted_s is None:
                yield turn
            turn_id = turn.parent

    def _children(self) -> dict[str, tuple[str, ...]]:
        """The turns that aren't deleted, by the nearest one before them that isn't either."""
        children: dict[str, list[str]] = {}
        for turn in self.live():
            children.setdefault(self._live_parent(turn), []).append(turn.turn_id)
        return {parent: tuple(ids) for parent, ids in children.items()}

    def _live_parent(self, turn: Turn) -> str:
        above = self._live_upwards(turn.parent)
        return next((one.turn_id for one in above if one is not turn), "")


Change = Callable[[ConversationState], ConversationState]
"""From one state to the next. May be called again on a newer state, so it holds no memory."""


def add_turn(turn: Turn) -> Change:
    """The turn at the end of the branch that its parent is on; that branch is shown then."""

    def change(state: ConversationState) -> ConversationState:
        head = replace(
            state.head,
            leaf=turn.turn_id,
            deleted_s=None,  # asked in a tab that was still open: it isn't to be lost
            created_s=state.head.created_s or turn.created_s,
            updated_s=max(state.head.updated_s, turn.created_s),
            title=state.head.title or title_of(turn.question),
        )
        return ConversationState(head, {**state.turns, turn.turn_id: turn})

    return change


def change_turn(turn_id: str, change: Callable[[Turn], Turn]) -> Change:
    """The turn replaced by `change(turn)`; nothing where it isn't there."""

    def changed(state: ConversationState) -> ConversationState:
        turn = state.turns.get(turn_id)
        if turn is None:
            return state
        return replace(state, turns={**state.turns, turn_id: change(turn)})

    return changed


def change_head(**values: object) -> Change:
    """The head with these fields."""
    return lambda state: replace(state, head=replace(state.head, **values))  # type: ignore[arg-type]


def show(turn_id: str) -> Change:
    """The newest branch through this turn is shown."""

    def change(state: ConversationState) -> ConversationState:
        turn = state.turns.get(turn_id)
        if turn is None or turn.deleted_s is not None:
            return state
        return replace(state, head=replace(state.head, leaf=state.newest_below(turn_id)))

    return change


def delete_turns(turn_ids: Iterable[str], now_s: float) -> Change:
    """These turns marked as deleted, with one moment, by which they can be brought back together.

    What follows them stays: it follows the turn before them then. Where nothing follows, what else
    stands in their place is shown.
    """
    wanted = frozenset(turn_ids)

    def change(state: ConversationState) -> ConversationState:
        gone = {turn.turn_id for turn in state.live()} & wanted
        if not gone:
            return state
        turns = {
            key: replace(turn, deleted_s=now_s) if key in gone else turn
            for key, turn in state.turns.items()
        }
        after = replace(state, turns=turns)
        return _to_an_end(after) if state.head.leaf in gone else after

    return change


def clear(now_s: float) -> Change:
    """All turns marked as deleted, those of other branches too."""
    return lambda state: delete_turns([turn.turn_id for turn in state.live()], now_s)(state)


def bring_back(deleted_s: float) -> Change:
    """What was deleted at that moment is there again."""

    def change(state: ConversationState) -> ConversationState:
        back = [key for key, turn in state.turns.items() if turn.deleted_s == deleted_s]
        if not back:
            return state
        turns = {**state.turns, **{key: replace(state.turns[key], deleted_s=None) for key in back}}
        brought = replace(state, turns=turns)
        shown = {turn.turn_id for turn in brought.path()}
        return brought if shown & set(back) else show(back[-1])(brought)

    return change


def _to_an_end(state: ConversationState) -> ConversationState:
    """The newest branch that goes on from what is left of the one that was shown.

    Otherwise that one could not be reached: variants are offered where one of them is shown.
    """
    path = state.path()
    end = state.newest_below(path[-1].turn_id if path else "")
    if not end and (live := state.live()):  # a damaged tree, all that is left hangs in a ring
        end = state.newest_below(live[-1].turn_id)
    return replace(state, head=replace(state.head, leaf=end or state.head.leaf))


def title_of(question: str) -> str:
    """A title made of a question, or of what was typed as one: its first words, on one line."""
    line = " ".join(seen(question).split())
    return line if len(line) <= MAX_TITLE_CHARS else line[: MAX_TITLE_CHARS - 1].rstrip() + "…"


def history_messages(turns: Iterable[Turn], system: str) -> tuple[Message, ...]:
    """What the model is told before the next question: the system prompt, the answered turns.

    A turn without an answer is left out with its question, and an answer without a question, so
    roles always alternate. Reasoning is never sent back.
    """
    messages = [Message("system", system)] if system.strip() else []
    for turn in turns:
        if turn.state == "ended" and turn.text.strip() and turn.question.strip():
            messages.append(Message("user", turn.question))
            messages.append(Message("assistant", turn.text))
    return tuple(messages)


def ended(turn: Turn, text: str, reasoning: str, receipt: Receipt, error: LLMError | None) -> Turn:
    """The turn as it stands when its answer is over."""
    return replace(
        turn, state="ended", text=text, reasoning=reasoning, receipt=receipt, error=error
    )


def interrupted(turn: Turn) -> Turn:
    """The turn as it stands when the process that answered it is gone."""
    return ended(turn, turn.text, turn.reasoning, Receipt(turn.model, Finish("interrupted")), None)
