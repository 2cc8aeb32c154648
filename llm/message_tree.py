"""Turns made of a tree of messages, as other apps keep them.

There every message is a node. Here a question and its answer are one turn: a question with several
answers becomes several turns with the same question, the messages of an answer (calls of tools
between its parts) are joined to one, and an answer nobody asked for has an empty question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from uuid import uuid4

from llm.conversation_tree import Conversation, ConversationKey, ConversationState, Receipt, Turn
from llm.import_notes import Notes
from llm.types import Finish, FinishReason, SamplingParams, Usage

_PIECE_CHARS = 16
"""What a message costs beside its text, so that empty ones aren't free of charge."""


@dataclass(frozen=True, slots=True)
class Node:
    """A message.

    Args:
        parent: the message before; empty for a first one.
        role: empty where the message itself isn't shown, but leads on to others.
        finish: why the answer ended, where that is told.
    """

    node_id: str
    parent: str = ""
    role: Literal["user", "assistant", "system", ""] = ""
    text: str = ""
    reasoning: str = ""
    model: str = ""
    created_s: float = 0.0
    finish: FinishReason | None = None
    usage: Usage = field(default_factory=Usage)
    reasoning_s: float | None = None


@dataclass(frozen=True, slots=True)
class MessageTree:
    """A conversation as another app keeps it.

    Args:
        source: the kind of file.
        own_id: what it is called there; empty where that isn't told.
        nodes: in any order; no id twice.
        children: by a message's id those after it, in their order; may lack any.
        current: the last message that is shown.
    """

    source: str
    own_id: str
    title: str
    nodes: Sequence[Node]
    children: Mapping[str, Sequence[str]]
    current: str
    created_s: float = 0.0
    updated_s: float = 0.0
    pinned: bool = False
    system_prompt: str = ""


class TangledError(Exception):
    """Its branches repeat more text than there is room for."""


@dataclass(slots=True)
class Budget:
    """How many characters the branches of a whole file may have together.

    A small file could otherwise grow without bound: each answer repeats its question.
    """

    left: int = 20_000_000

    def grant(self, chars: int) -> None:
        """There is so much text more in the file; a few branches may repeat it."""
        self.left += 4 * chars

    def spend(self, chars: int) -> None:
        """Room for so much.

        Raises:
            TangledError: there is none.
        """
        self.left -= chars
        if self.left < 0:
            raise TangledError


def turns_of(tree: MessageTree, budget: Budget, notes: Notes) -> tuple[dict[str, Turn], str]:
    """The turns, oldest first, and the last of those that are shown.

    Takes time in proportion to the messages and the budget; rings are cut.

    Raises:
        TangledError: the budget is used up.
    """
    texts = sum(_PIECE_CHARS + len(node.text) + len(node.reasoning) for node in tree.nodes)
    before = budget.left
    budget.grant(texts + len(tree.system_prompt))
    maker = _TurnMaker(budget, notes)
    first = _Place(None, tree.system_prompt)
    places: dict[str, _Place] = {}
    try:
        for node, parent in _from_the_roots(tree):
            places[node.node_id] = maker.step(places.get(parent, first), node)
        maker.end()
    except TangledError:
        # What it took for nothing isn't all taken from the others, nor can many go on for ever.
        budget.left = before // 2
        raise
    turns = maker.in_order()
    return turns, _leaf(turns, places.get(tree.current))


def _leaf(turns: dict[str, Turn], place: _Place | None) -> str:
    if not turns:
        return ""
    head = Conversation(ConversationKey("", ""))
    shown = place.answer.turn_id() if place and place.answer else ""
    return ConversationState(head, turns).newest_below(shown or next(reversed(turns)))


def _from_the_roots(tree: MessageTree) -> Iterable[tuple[Node, str]]:
    """All messages and what each follows, none before that; children in their order."""
    nodes = {node.node_id: node for node in tree.nodes}
    parents = {key: node.parent if node.parent in nodes else "" for key, node in nodes.items()}
    rank: dict[tuple[str, str], int] = {}
    for parent, listed in tree.children.items():
        for place, child in enumerate(listed):
            if child in nodes and parent in nodes and child != parent:
                parents[child] = parents[child] or parent
                rank.setdefault((parent, child), place)
    children: dict[str, list[str]] = defaultdict(list)
    for key, parent in parents.items():
        children[parent].append(key)
    for parent, below in children.items():
        below.sort(key=lambda key: rank.get((parent, key), len(nodes)))
    seen: set[str] = set()
    # Those of a ring hang on no root; the first of them is taken as one.
    for start in (*children.get("", ()), *nodes):
        waiting = [(start, "")]
        while waiting:
            key, parent = waiting.pop()
            if key in seen:
                continue
            seen.add(key)
            yield nodes[key], parent
            waiting.extend((child, key) for child in reversed(children.get(key, ())))


@dataclass(slots=True, eq=False)
class _Answer:
    """A question and its answer as far as one message."""

    number: int
    parent: str
    system_prompt: str
    question: Node | None
    last: Node | None = None
    before: _Answer | None = None
    goes_on: _Answer | None = None
    turn: Turn | None = None

    def turn_id(self) -> str:
        answer: _Answer | None = self
        while answer and answer.turn is None:
            answer = answer.goes_on
        return answer.turn.turn_id if answer and answer.turn else ""


@dataclass(frozen=True, slots=True)
class _Place:
    """What the next message follows."""

    answer: _Answer | None
    system_prompt: str


@dataclass(slots=True)
class _TurnMaker:
    _budget: Budget
    _notes: Notes
    _answers: list[_Answer] = field(default_factory=list)
    _moments: dict[str, float] = field(default_factory=dict)

    def step(self, place: _Place, node: Node) -> _Place:
        """Where the message leads to."""
        before = place.answer
        if node.role == "system":
            return _Place(before, node.text)
        if node.role == "user":
            parent = self._close(before).turn_id if before else ""
            return self._place(place, _Answer(0, parent, place.system_prompt, node))
        if node.role == "assistant" and before:
            after = _Answer(0, before.parent, before.system_prompt, before.question, node, before)
            before.goes_on = after
            return self._place(place, after)
        if node.role == "assistant":
            return self._place(place, _Answer(0, "", place.system_prompt, None, node))
        return place

    def end(self) -> None:
        """Make turns of all answers that nothing followed."""
        for answer in self._answers:
            if answer.goes_on is None:
                self._close(answer)

    def in_order(self) -> dict[str, Turn]:
        made = [answer for answer in self._answers if answer.turn]
        made.sort(key=lambda each: (self._moments[each.turn_id()], each.number))
        return {answer.turn.turn_id: answer.turn for answer in made if answer.turn}

    def _place(self, place: _Place, answer: _Answer) -> _Place:
        answer.number = len(self._answers)
        self._answers.append(answer)
        return _Place(answer, place.system_prompt)

    def _close(self, answer: _Answer) -> Turn:
        if answer.turn is None:
            answer.turn = self._turn(answer)
        return answer.turn

    def _turn(self, answer: _Answer) -> Turn:
        nodes: list[Node] = []
        part: _Answer | None = answer
        while part is not None and part.last is not None:
            nodes.append(part.last)
            self._budget.spend(_PIECE_CHARS + len(part.last.text) + len(part.last.reasoning))
            part = part.before
        nodes.reverse()
        question = answer.question.text if answer.question else ""
        self._budget.spend(_PIECE_CHARS + len(question) + len(answer.system_prompt))
        asked_s = answer.question.created_s if answer.question else 0.0
        answered_s = next((node.created_s for node in nodes if node.created_s), 0.0)
        turn = Turn(
            turn_id=uuid4().hex,
            question=question,
            backend="",
            params=SamplingParams(),
            system_prompt=answer.system_prompt,
            state="ended",
            text=self._notes.text("\n\n".join(node.text for node in nodes if node.text.strip())),
            reasoning=self._notes.text(
                "\n\n".join(node.reasoning for node in nodes if node.reasoning.strip())
            ),
            receipt=_receipt(nodes),
            parent=answer.parent,
            created_s=asked_s or answered_s,
        )
        # Another answer was asked for later than the question; the order goes by that.
        moment = max(self._moments.get(answer.parent, 0.0), answered_s or asked_s)
        self._moments[turn.turn_id] = moment
        return turn


def _receipt(nodes: Sequence[Node]) -> Receipt:
    """What is told of an answer; one that isn't there was stopped before it began."""
    finish = next((node.finish for node in reversed(nodes) if node.finish), None)
    usages = [node.usage for node in nodes if node.usage != Usage()]
    return Receipt(
        model=next((node.model for node in reversed(nodes) if node.model), ""),
        finish=Finish(finish or ("stop" if nodes else "abort"), usages[-1] if usages else Usage()),
        reasoning_s=next(
            (node.reasoning_s for node in nodes if node.reasoning_s is not None), None
        ),
    )
