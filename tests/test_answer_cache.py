"""Answers that are given again: to whom, under which conditions, and what happens meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from llm.answer_cache import AnswerCache
from llm.cache_guard import CacheGuard
from llm.cache_rules import CacheRules
from llm.cache_sqlite import SqliteAnswerStore
from llm.cache_ttl import DAY_S, HOUR_S
from llm.cache_types import AnswerStore, CacheKey, CacheStoreError, Candidate, Decision
from llm.chat import Chat
from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import ConversationKey, Turn
from llm.conversations import ConversationStore
from llm.errors import Reason, ServerUnreachableError
from llm.registry import JobRegistry
from llm.similar_answers import Match, NearMiss
from llm.types import (
    CacheUse,
    Fingerprint,
    FinishReason,
    FromCache,
    GenerationRequest,
    Message,
    SamplingParams,
)
from tests.driven_backend import NEVER, PATIENCE_S, DrivenBackend, DrivenStream, ManualClock, let_go

QUESTION = "How do I reverse a list in Python?"
ANSWER = ("Use ", "`reversed(a)`", " or `a[::-1]`.")
PRINT = Fingerprint("driven", "", "model", "revision", "template", "numerics")
GREEDY = SamplingParams(temperature=0)


@dataclass
class Room:
    """A chat with one hand-driven backend, several people and a cache in a real file."""

    backend: DrivenBackend
    registry: JobRegistry
    cache: AnswerCache
    chat: Chat
    clock: ManualClock

    def new(self, owner: str = "ann") -> ConversationKey:
        return self.chat.open(owner, None)

    def ask(
        self,
        question: str = QUESTION,
        here: ConversationKey | None = None,
        *,
        owner: str = "ann",
        params: SamplingParams = GREEDY,
        system_prompt: str = "",
        similar: bool = False,
        random: bool = False,
        fresh: bool = False,
        cached: bool = True,
    ) -> ConversationKey:
        here = here or self.new(owner)
        use = CacheUse(here.owner, similar=similar, random=random, fresh=fresh)
        self.chat.ask(
            here,
            question,
            person=here.owner,
            backend="driven",
            params=params,
            system_prompt=system_prompt,
            cache=use if cached else None,
        )
        return here

    def model_says(self, *pieces: str, reason: FinishReason = "stop") -> DrivenStream:
        """The model answers the next question it is asked."""
        stream = self.backend.next_stream()
        for piece in pieces or ANSWER:
            stream.say(piece)
        stream.finish(reason, len(pieces or ANSWER), self.backend.told_fingerprint)
        assert self.cache.flush(PATIENCE_S)
        return stream

    def answered(self, **how: object) -> Turn:
        """A question that the model answered, and whose answer is kept if it may be."""
        here = self.ask(**how)  # type: ignore[arg-type]
        self.model_says()
        return self.ended(here)

    def ended(self, here: ConversationKey) -> Turn:
        """The last turn once it has ended."""
        job = self.registry.get(here)
        if job is not None:
            let_go(job)
        turn = self.chat.turns(here)[-1]
        assert turn.state == "ended"
        return turn

    def asks_the_model(self, **how: object) -> None:
        """Such a question goes to the model."""
        here = self.ask(**how)  # type: ignore[arg-type]
        self.model_says("asked")
        turn = self.ended(here)
        assert turn.text == "asked"
        assert turn.receipt is not None
        assert turn.receipt.cached is None

    def is_given_again(self, **how: object) -> Turn:
        """Such a question is answered without the model."""
        asked = len(self.backend.streams)
        turn = self.ended(self.ask(**how))  # type: ignore[arg-type]
        assert len(self.backend.streams) == asked, "the model was asked"
        assert turn.receipt is not None
        assert turn.receipt.cached is not None
        return turn

    def decisions(self, owner: str = "ann") -> list[Decision]:
        assert self.cache.flush(PATIENCE_S)
        return list(self.cache.contents.decisions(owner))


MakeRoom = Callable[..., Room]


@pytest.fixture
def make_room(tmp_path: Path) -> Iterator[MakeRoom]:
    rooms: list[Room] = []

    def make(
        rules: CacheRules | None = None,
        make_store: Callable[[], AnswerStore] | None = None,
        slots: int = 4,
        similar: Callable[[CacheGuard], object] | None = None,
        idle_limit_s: float = 60.0,
    ) -> Room:
        clock = ManualClock(1_700_000_000.0)
        backend = DrivenBackend(slots)
        backend.told_fingerprint = PRINT
        cache = AnswerCache(
            make_store or (lambda: SqliteAnswerStore(tmp_path / "answers.sqlite3", 2**26)),
            rules,
            similar,  # type: ignore[arg-type]
            clock=clock,
            limit_s=PATIENCE_S,  # a busy machine is not what is tested
        )
        assert cache.flush(PATIENCE_S)
        registry = JobRegistry(idle_limit_s=idle_limit_s)
        url = f"sqlite:///{tmp_path / f'conversations-{len(rooms)}.sqlite3'}"
        store = ConversationStore(ConversationDatabase(url, "this process"))
        chat = Chat(store, registry, {"driven": lambda: backend}, cache=cache)
        rooms.append(Room(backend, registry, cache, chat, clock))
        return rooms[-1]

    yield make
    for room in rooms:
        room.backend.close()
        room.chat.close()
        room.cache.close()


@pytest.fixture
def room(make_room: MakeRoom) -> Room:
    return make_room()


def test_the_same_question_is_answered_without_the_model(room: Room) -> None:
    first = room.answered()
    room.clock.advance(3 * HOUR_S)
    again = room.is_given_again()
    assert (again.text, again.reasoning) == (first.text, first.reasoning)
    assert again.receipt is not None
    assert first.receipt is not None
    assert again.receipt.finish.usage == first.receipt.finish.usage
    assert again.receipt.model == first.receipt.model
    assert again.receipt.cached is not None
    assert again.receipt.cached.kind == "exact"
    assert room.clock() - again.receipt.cached.created_s == 3 * HOUR_S


def test_an_answer_is_given_again_beside_a_full_line(make_room: MakeRoom) -> None:
    room = make_room(slots=1)
    room.answered()
    busy = room.ask("Something else entirely?")
    stream = room.backend.next_stream()
    room.is_given_again()
    stream.answer("now")
    assert room.ended(busy).text == "now"


def test_the_pieces_and_the_thinking_are_kept_as_they_came(room: Room) -> None:
    here = room.ask()
    stream = room.backend.next_stream()
    stream.say("Hm. ", "reasoning")
    stream.say("So.", "reasoning")
    stream.say("Ye")
    stream.say("s 🙂, 是的")
    stream.finish("stop", 4, PRINT)
    first = room.ended(here)
    assert room.cache.flush(PATIENCE_S)
    again = room.is_given_again()
    assert (again.text, again.reasoning) == ("Yes 🙂, 是的", "Hm. So.")
    assert (first.text, first.reasoning) == (again.text, again.reasoning)


OTHER_PARAMS = {
    "temperature": replace(GREEDY, temperature=0.5, seed=1),
    "top_p": replace(GREEDY, top_p=0.5),
    "max_tokens": replace(GREEDY, max_tokens=7),
    "seed": replace(GREEDY, seed=7),
    "top_k": replace(GREEDY, top_k=7),
    "min_p": replace(GREEDY, min_p=0.1),
    "repetition_penalty": replace(GREEDY, repetition_penalty=1.1),
    "presence_penalty": replace(GREEDY, presence_penalty=0.1),
    "frequency_penalty": replace(GREEDY, frequency_penalty=0.1),
    "stop": replace(GREEDY, stop=("###",)),
}


def test_every_sampling_parameter_has_its_case() -> None:
    assert set(OTHER_PARAMS) == set(SamplingParams.__dataclass_fields__)


@pytest.mark.parametrize("name", OTHER_PARAMS)
def test_another_sampling_parameter_asks_the_model(room: Room, name: str) -> None:
    room.answered()
    room.asks_the_model(params=OTHER_PARAMS[name])


@pytest.mark.parametrize("field", Fingerprint.__dataclass_fields__)
def test_another_model_in_any_respect_asks_the_model(room: Room, field: str) -> None:
    room.answered()
    room.backend.told_fingerprint = replace(PRINT, **{field: "another"})
    room.asks_the_model()


def test_another_system_prompt_asks_the_model(room: Room) -> None:
    room.answered()
    room.asks_the_model(system_prompt="Be brief.")


@pytest.mark.parametrize(
    "other",
    [
        "how do I reverse a list in Python?",
        "How do I reverse a list in Python",
        "How do I reverse a list in Python ?",
        "How do I reverse a list in  Python?",
        "How do I reverse a list in Python?\n",
        "How do I reverse a list in Python？",
        "How do I reverse a list in Python\u200b?",
    ],
)
def test_exact_is_exact(room: Room, other: str) -> None:
    room.answered()
    room.asks_the_model(question=other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is C?", "What is C#?"),
        ("What does i++ do?", "What does ++i do?"),
        ("What is 3 + 4?", "What is 3 - 4?"),
        ("What is a US dollar?", "What is a us dollar?"),
    ],
)
def test_no_sign_is_dropped_and_no_letter_made_small(room: Room, one: str, other: str) -> None:
    room.answered(question=one)
    room.asks_the_model(question=other)
    room.is_given_again(question=one)


def test_the_conversation_before_must_be_the_same(room: Room) -> None:
    here = room.ask("What is a list in Python?")
    room.model_says()
    room.ended(here)
    room.ask(QUESTION, here)
    room.model_says("in a conversation")
    room.ended(here)
    room.asks_the_model()  # a first question
    there = room.ask("What is a list in Python?")
    room.ended(there)  # given again
    asked = len(room.backend.streams)
    room.ask(QUESTION, there)
    assert room.ended(there).text == "in a conversation"
    assert len(room.backend.streams) == asked
    # The same question after another answer:
    elsewhere = room.ask("What is a tuple in Python?")
    room.model_says()
    room.ended(elsewhere)
    room.ask(QUESTION, elsewhere)
    room.model_says("after another")
    assert room.ended(elsewhere).text == "after another"


def test_another_person_is_not_given_it(room: Room) -> None:
    room.answered(owner="ann")
    room.asks_the_model(owner="bob")
    room.is_given_again(owner="ann")


def test_where_answers_are_shared_everybody_is_given_first_ones(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True))
    room.answered(owner="ann")
    bob = room.ask(owner="bob")
    assert room.ended(bob).text == "".join(ANSWER)
    assert len(room.backend.streams) == 1


def test_where_answers_are_shared_later_ones_are_still_private(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True))
    for owner in ("ann", "bob"):
        here = room.ask("What is a list in Python?", owner=owner)
        if owner == "ann":
            room.model_says()
        room.ended(here)
        asked = len(room.backend.streams)
        room.ask(QUESTION, here)
        room.model_says(f"{owner}'s")
        assert room.ended(here).text == f"{owner}'s"
        assert len(room.backend.streams) == asked + 1


@pytest.mark.parametrize("reason", ["length", "abort", "error", "interrupted"])
def test_an_answer_that_did_not_finish_by_itself_is_not_kept(
    room: Room, reason: FinishReason
) -> None:
    here = room.ask()
    room.model_says("half an ans", reason=reason)
    room.ended(here)
    room.asks_the_model()


def test_a_stopped_and_a_failed_answer_are_not_kept(room: Room) -> None:
    here = room.ask()
    stream = room.backend.next_stream()
    stream.say("half an ans")
    room.chat.stop(here)
    room.ended(here)
    here = room.ask()
    stream = room.backend.next_stream()
    stream.say("half an ans")
    stream.raise_(RuntimeError())
    room.ended(here)
    room.asks_the_model()


def test_an_empty_answer_is_not_kept(room: Room) -> None:
    here = room.ask()
    stream = room.backend.next_stream()
    stream.say("only thoughts", "reasoning")
    stream.say("\n")
    stream.finish("stop", 1, PRINT)
    room.ended(here)
    room.asks_the_model()


def test_what_turned_out_to_be_reasoning_is_no_answer(room: Room) -> None:
    here = room.ask()
    stream = room.backend.next_stream()
    stream.say("thoughts")
    stream.say("", "recast")
    stream.finish("stop", 1, PRINT)
    room.ended(here)
    room.asks_the_model()


def test_a_long_answer_is_not_kept(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(max_chars=10))
    here = room.ask()
    room.model_says("0123456789", "x")
    room.ended(here)
    room.asks_the_model()
    here = room.ask(QUESTION + " Briefly.")
    room.model_says("0123456789")
    room.ended(here)
    room.is_given_again(question=QUESTION + " Briefly.")


def test_an_answer_is_kept_as_that_of_the_model_which_gave_it(room: Room) -> None:
    other = replace(PRINT, revision="another")
    here = room.ask()
    stream = room.backend.next_stream()
    stream.say("the other's")
    stream.finish("stop", 1, other)
    room.ended(here)
    room.asks_the_model()
    room.backend.told_fingerprint = other
    assert room.is_given_again().text == "the other's"


def test_an_answer_of_nobody_knows_whom_is_not_kept(room: Room) -> None:
    here = room.ask()
    stream = room.backend.next_stream()
    stream.say("of which?")
    stream.finish("stop", 1, None)
    room.ended(here)
    room.asks_the_model()


def test_while_it_is_not_known_who_would_answer_nothing_is_given_but_kept(room: Room) -> None:
    room.answered()
    room.backend.told_fingerprint = None
    here = room.ask("What is a list in Python?")
    stream = room.backend.next_stream()
    stream.say("loaded meanwhile")
    stream.finish("stop", 1, PRINT)
    room.ended(here)
    room.asks_the_model()
    assert [d.reason for d in room.decisions()] == ["unknown-model", "unknown-model", ""]
    room.backend.told_fingerprint = PRINT
    assert room.is_given_again(question="What is a list in Python?").text == "loaded meanwhile"


RANDOM = SamplingParams(temperature=0.7)


def test_an_answer_chosen_at_random_is_given_again_only_where_that_is_allowed(room: Room) -> None:
    room.answered(params=RANDOM, random=True)
    room.asks_the_model(params=RANDOM)
    room.is_given_again(params=RANDOM, random=True)
    seeded = replace(RANDOM, seed=3)
    room.answered(params=seeded)
    room.is_given_again(params=seeded)
    for unknown in (replace(RANDOM, temperature=None), replace(RANDOM, top_k=50)):
        room.asks_the_model(params=unknown)
        room.asks_the_model(params=unknown)


@pytest.mark.parametrize(
    "question",
    [
        "What is the weather in Paris today?",
        "今天北京天气怎么样？",
        "Write a poem about the sea.",
        "写一首关于大海的诗",
        "My name is Ann. What can I cook?",
        "我叫小明，今年多大可以开车？",
    ],
)
def test_what_is_never_cached_is_asked_each_time_and_its_text_is_not_in_the_log(
    room: Room, question: str
) -> None:
    room.asks_the_model(question=question)
    room.asks_the_model(question=question)
    decisions = room.decisions()
    assert [(d.kind, d.question) for d in decisions] == [("refused", "")] * 2
    assert all(d.reason for d in decisions)


def test_without_the_cache_nothing_is_looked_up_kept_or_noted(room: Room) -> None:
    room.asks_the_model(cached=False)
    room.asks_the_model(cached=True)
    room.asks_the_model(cached=False)
    assert [d.kind for d in room.decisions()] == ["miss"]


def test_a_fresh_answer_takes_the_kept_ones_place(room: Room) -> None:
    room.answered()
    here = room.ask(fresh=True)
    room.model_says("newer")
    room.ended(here)
    assert room.is_given_again().text == "newer"


def test_a_fresh_answer_that_fails_leaves_the_kept_one(room: Room) -> None:
    first = room.answered()
    here = room.ask(fresh=True)
    room.backend.next_stream().raise_(RuntimeError())
    room.ended(here)
    assert room.is_given_again().text == first.text


def test_regenerating_is_always_fresh_and_an_edited_question_is_not(room: Room) -> None:
    turn = room.answered()
    here = room.chat.open("ann", None)
    here = room.ask(here=here)
    again = room.ended(here)
    assert again.receipt is not None
    assert again.receipt.cached is not None
    how = {"person": "ann", "backend": "driven", "params": GREEDY, "cache": CacheUse("ann")}
    room.chat.ask_again(here, again.turn_id, **how)  # type: ignore[arg-type]
    room.model_says("anew")
    assert room.ended(here).text == "anew"
    room.chat.ask_again(here, room.ended(here).turn_id, question=turn.question, **how)  # type: ignore[arg-type]
    assert room.ended(here).text == "anew"
    assert room.ended(here).receipt.cached is not None  # type: ignore[union-attr]


def test_going_on_is_not_cached(room: Room) -> None:
    here = room.ask()
    room.model_says("half an ans", reason="length")
    turn = room.ended(here)
    room.chat.go_on(here, turn.turn_id, person="ann", backend="driven", params=GREEDY)
    room.model_says("wer")
    assert room.ended(here).text == "half an answer"
    room.asks_the_model()


def test_a_question_that_waits_behind_an_answer_is_given_a_kept_one(room: Room) -> None:
    here = room.new()
    room.ask("What is a list in Python?", here)
    room.model_says()
    room.ended(here)
    room.ask(QUESTION, here)
    room.model_says("second")
    room.ended(here)
    there = room.new()
    room.ask("What is a list in Python?", there)
    room.ask(QUESTION, there)
    for _ in range(2):
        room.ended(there)
    assert [turn.text for turn in room.chat.turns(there)] == ["".join(ANSWER), "second"]


def test_an_answer_expires(room: Room) -> None:
    room.answered()
    room.clock.advance(DAY_S - 1)
    room.is_given_again()
    room.clock.advance(1)
    room.asks_the_model()


def test_what_ages_quickly_expires_sooner(room: Room) -> None:
    question = "Which version of Python has match statements?"
    room.answered(question=question)
    room.clock.advance(HOUR_S - 1)
    room.is_given_again(question=question)
    room.clock.advance(1)
    room.asks_the_model(question=question)


def test_the_log_says_what_was_decided_and_what_was_saved(room: Room) -> None:
    room.answered()
    again = room.is_given_again()
    hit, miss = room.decisions()
    assert (hit.kind, miss.kind) == ("exact", "miss")
    assert hit.question == miss.question == QUESTION
    assert hit.saved_tokens == len(ANSWER)
    assert hit.saved_s >= 0
    assert again.receipt is not None
    assert again.receipt.cached is not None
    assert again.receipt.cached.decision == hit.decision_id
    assert room.decisions("bob") == []


def test_entries_are_seen_forgotten_and_cleared_by_their_owner_alone(room: Room) -> None:
    room.answered(owner="ann")
    room.answered(owner="bob")
    (entry,) = room.cache.contents.entries("ann", 10)
    assert entry.question == QUESTION
    assert room.cache.contents.totals("ann").entries == 1
    room.cache.contents.forget("bob", entry.key.digest)
    assert room.cache.contents.entries("ann", 10)
    assert room.cache.contents.clear("bob") == 1
    assert room.cache.contents.entries("ann", 10)
    assert room.cache.contents.entries("bob", 10) == []
    room.cache.contents.forget("ann", entry.key.digest)
    assert room.cache.contents.entries("ann", 10) == []


@pytest.mark.parametrize(
    "how", [{}, {"model": "driven-model"}, {"before_s": 1_700_000_000.0 + 60}], ids=str
)
@pytest.mark.parametrize("shared", [False, True])
def test_what_was_under_way_when_it_was_cleared_is_not_kept(
    make_room: MakeRoom, shared: bool, how: dict[str, object]
) -> None:
    room = make_room(CacheRules(shared=shared, shared_clear=shared))
    here = room.ask()
    stream = room.backend.next_stream()
    stream.say("a secret ")
    if "model" in how:
        how = {"model": room.backend.status().model}
    assert room.cache.contents.clear("ann", **how) == 0  # type: ignore[arg-type]
    room.clock.advance(1)
    stream.say("answer")
    stream.finish("stop", 2, PRINT)
    assert room.ended(here).text == "a secret answer"
    assert room.cache.flush(PATIENCE_S)
    assert room.cache.contents.entries("ann", 10) == []
    room.clock.advance(1)
    room.answered()
    room.is_given_again()


@pytest.mark.parametrize(
    "how", [{"owner": "bob"}, {"model": "another"}, {"before_s": 0.0}], ids=str
)
def test_what_others_clear_is_kept(room: Room, how: dict[str, object]) -> None:
    here = room.ask()
    stream = room.backend.next_stream()
    room.cache.contents.clear(**{"owner": "ann"} | how)  # type: ignore[arg-type]
    room.clock.advance(1)
    stream.answer("hers")
    room.ended(here)


class BrokenStore:
    """A store each of whose methods raises."""

    def __getattr__(self, name: str) -> Callable[..., object]:
        def fail(*args: object, **kwargs: object) -> object:
            raise CacheStoreError("broken")

        return fail


def test_a_store_that_fails_is_a_miss_and_one_warning(
    make_room: MakeRoom, caplog: pytest.LogCaptureFixture
) -> None:
    room = make_room(make_store=BrokenStore)  # type: ignore[arg-type]
    for _ in range(3):
        room.asks_the_model()
    assert room.cache.in_trouble
    assert len([r for r in caplog.records if "cache" in r.message.lower()]) == 1


def test_a_store_that_cannot_be_opened_is_a_miss(make_room: MakeRoom) -> None:
    def fail() -> AnswerStore:
        raise OSError

    room = make_room(make_store=fail)
    room.asks_the_model()
    assert room.cache.in_trouble


# -- two people at the same moment --


def test_two_who_ask_the_same_share_one_generation(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True), slots=1)
    ann = room.ask(owner="ann")
    stream = room.backend.next_stream()
    stream.say("One ")
    bob = room.ask(owner="bob")
    job = room.registry.get(bob)
    assert job is not None
    while "One " not in job.snapshot().text:
        job.wait(job.snapshot().version, PATIENCE_S)
    stream.say("answer.")
    stream.finish("stop", 2, PRINT)
    assert [room.ended(each).text for each in (ann, bob)] == ["One answer."] * 2
    assert len(room.backend.streams) == 1
    receipts = [room.ended(each).receipt for each in (ann, bob)]
    said = [receipt.finish.why if receipt is not None else None for receipt in receipts]
    assert said == [None, Reason("finish-joined")], "who joined is told so"


def test_who_joined_may_stop_without_stopping_the_first(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True))
    ann = room.ask(owner="ann")
    stream = room.backend.next_stream()
    stream.say("One ")
    bob = room.ask(owner="bob")
    room.chat.stop(bob)
    assert room.ended(bob).receipt.finish.reason == "abort"  # type: ignore[union-attr]
    stream.say("answer.")
    stream.finish("stop", 2, PRINT)
    assert room.ended(ann).text == "One answer."


@pytest.mark.parametrize("how", ["stopped", "failed"])
def test_where_the_first_ends_early_the_model_goes_on_for_the_second(
    make_room: MakeRoom, how: str
) -> None:
    room = make_room(CacheRules(shared=True), slots=1)
    ann = room.ask(owner="ann")
    stream = room.backend.next_stream()
    stream.say("One ")
    bob = room.ask(owner="bob")
    job = room.registry.get(bob)
    assert job is not None
    while "One " not in job.snapshot().text:
        job.wait(job.snapshot().version, PATIENCE_S)
    if how == "stopped":
        room.chat.stop(ann)
    else:
        stream.raise_(RuntimeError())
    rest = room.backend.next_stream()
    assert rest.request.start_text == "One "
    rest.say("answer.")
    rest.finish("stop", 1, PRINT)
    assert room.ended(bob).text == "One answer."
    assert room.ended(ann).text == "One "
    assert room.registry.running() == 0


def test_private_answers_are_not_joined(room: Room) -> None:
    ann = room.ask(owner="ann")
    first = room.backend.next_stream()
    bob = room.ask(owner="bob")
    second = room.backend.next_stream()
    first.answer("Ann's")
    second.answer("Bob's")
    assert [room.ended(each).text for each in (ann, bob)] == ["Ann's", "Bob's"]


# -- similar questions --


class Search:
    """Stands for the search, whose moment the test says; what it finds is really kept."""

    def __init__(self, guard: CacheGuard) -> None:
        self._guard = guard
        self.may_end = threading.Event()
        self.says_different = False

    def why_not(self, question: str) -> str:
        return ""

    def vector(self, question: str) -> None:
        return None

    def search(
        self, key: CacheKey, question: str, now_s: float
    ) -> tuple[Match | NearMiss | None, list[Candidate]]:
        entries = self._guard.ask(lambda store: store.entries(key.scope, now_s, 10), PATIENCE_S)
        self.may_end.wait(PATIENCE_S)
        like = [entry for entry in entries if entry.key.partition == key.partition]
        if not like:
            return None, []
        digest = like[0].key.digest
        if self.says_different:
            return NearMiss(Candidate(digest, like[0].question, b"", ""), 0.91, "numbers"), []
        answer = self._guard.ask(lambda store: store.get(digest, key.scope, now_s), PATIENCE_S)
        assert answer is not None
        return Match(answer, 0.93), []


ALIKE = "What is the way to reverse a Python list?"


@pytest.fixture
def searching(make_room: MakeRoom) -> tuple[Room, Search]:
    made: list[Search] = []

    def similar(guard: CacheGuard) -> Search:
        made.append(Search(guard))
        return made[-1]

    room = make_room(slots=1, similar=similar)
    room.answered()
    return room, made[0]


def test_a_similar_question_is_answered_from_the_cache_before_the_model_speaks(
    searching: tuple[Room, Search],
) -> None:
    room, search = searching
    here = room.ask(ALIKE, similar=True)
    stream = room.backend.next_stream()
    search.may_end.set()
    turn = room.ended(here)
    assert stream.closed.wait(PATIENCE_S)
    assert turn.text == "".join(ANSWER)
    assert turn.receipt is not None
    assert turn.receipt.finish.reason == "stop"
    cached = turn.receipt.cached
    assert cached is not None
    assert (cached.kind, cached.question, cached.similarity) == ("similar", QUESTION, 0.93)
    assert [d.kind for d in room.decisions()] == ["similar", "miss"]


def test_once_the_model_speaks_it_is_left_to_speak(searching: tuple[Room, Search]) -> None:
    room, search = searching
    here = room.ask(ALIKE, similar=True)
    stream = room.backend.next_stream()
    stream.say("The model's ")
    search.may_end.set()
    stream.say("own.")
    stream.finish("stop", 2, PRINT)
    turn = room.ended(here)
    assert turn.text == "The model's own."
    assert turn.receipt is not None
    assert turn.receipt.cached is None
    assert [d.kind for d in room.decisions()] == ["miss", "miss"]


def test_who_stands_in_line_leaves_it_for_a_similar_answer(
    searching: tuple[Room, Search],
) -> None:
    room, search = searching
    busy = room.ask("Something else entirely?")
    stream = room.backend.next_stream()
    here = room.ask(ALIKE, similar=True)
    search.may_end.set()
    assert room.ended(here).text == "".join(ANSWER)
    stream.answer("now")
    assert room.ended(busy).text == "now"
    assert len(room.backend.streams) == 2


def test_a_near_miss_is_noted_and_the_model_answers(searching: tuple[Room, Search]) -> None:
    room, search = searching
    search.says_different = True
    search.may_end.set()
    here = room.ask(ALIKE, similar=True)
    room.model_says("its own")
    assert room.ended(here).text == "its own"
    near = [d for d in room.decisions() if d.kind == "near"]
    assert [(d.question, d.other, d.reason) for d in near] == [(ALIKE, QUESTION, "numbers")]


@pytest.mark.parametrize("how", [{"similar": False}, {"similar": True, "fresh": True}])
def test_similar_questions_are_looked_for_only_where_that_is_wanted(
    searching: tuple[Room, Search], how: dict[str, bool]
) -> None:
    room, search = searching
    search.may_end.set()
    here = room.ask(ALIKE, **how)
    room.model_says("asked")
    assert room.ended(here).text == "asked"


def test_a_stop_while_searching_stops(searching: tuple[Room, Search]) -> None:
    room, search = searching
    here = room.ask(ALIKE, similar=True)
    room.backend.next_stream()
    room.chat.stop(here)
    turn = room.ended(here)
    search.may_end.set()
    assert turn.text == ""
    assert turn.receipt is not None
    assert turn.receipt.finish.reason == "abort"


def test_a_search_that_fails_is_a_miss(make_room: MakeRoom) -> None:
    class Fails(Search):
        def search(
            self, key: CacheKey, question: str, now_s: float
        ) -> tuple[Match | NearMiss | None, list[Candidate]]:
            raise RuntimeError

    room = make_room(similar=Fails)
    room.answered()
    room.asks_the_model(question=ALIKE, similar=True)


def test_a_wrong_match_is_forgotten(searching: tuple[Room, Search]) -> None:
    room, search = searching
    here = room.ask(ALIKE, similar=True)
    room.backend.next_stream()
    search.may_end.set()
    turn = room.ended(here)
    assert turn.receipt is not None
    assert turn.receipt.cached is not None
    room.cache.doubt("bob", turn.receipt.cached, ALIKE, wrong=True)
    room.is_given_again()
    room.cache.doubt("ann", turn.receipt.cached, ALIKE, wrong=False)
    room.is_given_again()
    room.cache.doubt("ann", turn.receipt.cached, ALIKE, wrong=True)
    assert [d.judged for d in room.decisions() if d.kind == "similar"] == [False]
    room.asks_the_model()


# -- shared answers, and what isn't --


def joined(room: Room, here: ConversationKey, text: str) -> None:
    """Until somebody who follows has heard this much."""
    job = room.registry.get(here)
    assert job is not None
    while text not in job.snapshot().text + job.snapshot().reasoning:
        assert not job.wait(job.snapshot().version, PATIENCE_S).done


def test_what_a_person_told_the_model_of_themselves_is_not_shared(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True, shared_clear=True, system_prompt="Be kind."))
    for own, shared in (("I live at 5 Elm Street.", False), ("Be kind.", True), ("", True)):
        here = room.ask(owner="ann", system_prompt=own)
        room.model_says(own or "none")
        room.ended(here)
        assert bool(room.cache.contents.entries("bob", 10)) == shared
        if shared:
            there = room.ask(owner="bob", system_prompt=own)
            assert room.ended(there).text == (own or "none")
        else:
            room.asks_the_model(owner="bob", system_prompt=own)
        room.cache.contents.clear("ann")
        room.clock.advance(1)


def test_who_wants_the_very_same_does_not_join_what_may_be_similar(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True))
    ann = room.ask(owner="ann", similar=True)
    first = room.backend.next_stream()
    bob = room.ask(owner="bob")
    second = room.backend.next_stream()
    first.answer("Ann's")
    second.answer("Bob's")
    assert [room.ended(each).text for each in (ann, bob)] == ["Ann's", "Bob's"]


def test_who_joined_is_told_that_it_came_from_the_cache(make_room: MakeRoom) -> None:
    made: list[Search] = []

    def similar(guard: CacheGuard) -> Search:
        made.append(Search(guard))
        return made[-1]

    room = make_room(CacheRules(shared=True), slots=1, similar=similar)
    room.answered()
    ann = room.ask(ALIKE, owner="ann", similar=True)
    room.backend.next_stream()
    bob = room.ask(ALIKE, owner="bob", similar=True)
    made[0].may_end.set()
    for here in (ann, bob):
        receipt = room.ended(here).receipt
        assert receipt is not None
        assert receipt.cached is not None
        assert receipt.cached.question == QUESTION


def test_who_joined_and_waits_in_line_then_is_no_silent_model(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True), slots=1, idle_limit_s=0.5)
    ann = room.ask(owner="ann")
    stream = room.backend.next_stream()
    stream.say("One ")
    bob = room.ask(owner="bob")
    joined(room, bob, "One ")
    other = room.ask("Something else entirely?", owner="cy")
    room.chat.stop(ann)
    busy = room.backend.next_stream()
    job = room.registry.get(bob)
    assert job is not None
    for _ in range(10):  # longer than a model may be silent; the other speaks all the while
        busy.say("x")
        assert not job.wait(NEVER, 0.1).done, job.snapshot().error
    busy.finish()
    rest = room.backend.next_stream()
    rest.say("answer.")
    rest.finish("stop", 1, PRINT)
    assert room.ended(bob).text == "One answer."
    assert room.ended(other).text == "x" * 10


def test_thinking_is_not_mixed_where_the_first_stops_in_thought(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True), slots=1)
    ann = room.ask(owner="ann")
    stream = room.backend.next_stream()
    stream.say("Let me think. ", "reasoning")
    bob = room.ask(owner="bob")
    joined(room, bob, "Let me think. ")
    room.chat.stop(ann)
    rest = room.backend.next_stream()
    rest.say("I think anew.", "reasoning")
    rest.say("Yes.")
    rest.finish("stop", 1, PRINT)
    turn = room.ended(bob)
    assert (turn.reasoning, turn.text) == ("Let me think. I think anew.", "Yes.")


def test_a_joined_answer_is_in_the_log(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True))
    room.ask(owner="ann")
    stream = room.backend.next_stream()
    bob = room.ask(owner="bob")
    stream.say("One answer.")
    stream.finish("stop", 2, PRINT)
    room.ended(bob)
    assert [(d.kind, d.reason, d.saved_tokens) for d in room.decisions("bob")] == [
        ("exact", "joined", 2)
    ]


# -- nothing is left behind, and one fault is no other's --


def test_nothing_is_left_of_a_search_that_nobody_wants_any_more(
    searching: tuple[Room, Search],
) -> None:
    room, search = searching
    busy = room.ask("Something else entirely?")
    stream = room.backend.next_stream()
    here = room.ask(ALIKE, similar=True)
    room.chat.stop(here)
    room.ended(here)
    search.may_end.set()
    stream.answer("now")
    room.ended(busy)
    assert room.cache._search._seeking == {}
    assert room.registry._lines == {}
    assert "similar" not in [d.kind for d in room.decisions()]


class Fails(Search):
    """An embedding that fails."""

    def vector(self, question: str) -> None:
        raise ServerUnreachableError(server="embeddings")


def test_an_embedding_that_fails_costs_nothing_but_similar_hits(make_room: MakeRoom) -> None:
    room = make_room(similar=Fails)
    room.answered(similar=True)
    room.is_given_again(similar=True)
    told = FromCache("similar", room.cache.contents.entries("ann", 1)[0].key.digest, 0.0, "", 0.9)
    room.cache.doubt("ann", told, ALIKE, wrong=True)
    assert room.cache.contents.entries("ann", 1) == []
    assert not room.cache.in_trouble


def test_a_kept_answer_is_not_taken_for_a_quick_model(room: Room) -> None:
    """Else who stands in line would be told that it is over in a moment."""
    here = room.ask()
    stream = room.backend.next_stream()
    stream.say("slow")
    stream.finish("stop", 1, PRINT)
    room.ended(here)
    assert room.cache.flush(PATIENCE_S)
    through = room.cache.through(room.backend)
    recent = room.registry._recent.get(through)
    assert recent is not None
    before = recent.wait_s([], [], 1)
    job = room.registry.submit(
        "straight",
        "ann",
        through,
        GenerationRequest((Message("user", QUESTION),), GREEDY, cache=CacheUse("ann")),
        save=lambda snapshot: None,
    )
    assert let_go(job).cached is not None
    assert recent.wait_s([], [], 1) == before


def test_of_several_who_follow_one_goes_on_for_all(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True), slots=4)
    ann = room.ask(owner="ann")
    stream = room.backend.next_stream()
    stream.say("One ")
    others = [room.ask(owner=name) for name in ("bob", "cy", "di")]
    for here in others:
        joined(room, here, "One ")
    room.chat.stop(ann)
    rest = room.backend.next_stream()
    rest.say("ans")
    for here in others:
        joined(room, here, "One ans")
    late = room.ask(owner="ed")
    joined(room, late, "One ans")
    rest.say("wer.")
    rest.finish("stop", 2, PRINT)
    assert [room.ended(here).text for here in (*others, late)] == ["One answer."] * 4
    assert len(room.backend.streams) == 2
    assert room.registry.running() == 0


def test_where_it_fails_twice_all_who_follow_are_told(make_room: MakeRoom) -> None:
    room = make_room(CacheRules(shared=True), slots=4)
    room.ask(owner="ann")
    stream = room.backend.next_stream()
    others = [room.ask(owner=name) for name in ("bob", "cy")]
    stream.raise_(ServerUnreachableError(url="http://gone"))
    room.backend.next_stream().raise_(ServerUnreachableError(url="http://gone"))
    for here in others:
        assert isinstance(room.ended(here).error, ServerUnreachableError)
    assert len(room.backend.streams) == 2


def test_the_log_says_why_nothing_similar_was_found(searching: tuple[Room, Search]) -> None:
    room, search = searching
    here = room.ask(ALIKE, similar=True)
    room.model_says("quicker")
    room.ended(here)
    assert room.decisions()[0].reason == "late"
    search.may_end.set()
    search.why_not = lambda question: "unread"  # type: ignore[method-assign]
    here = room.ask("What is a tuple in Python?", similar=True)
    stream = room.backend.next_stream()
    seeking = room.cache._search._seeking[stream.request.request_id]
    end_s = time.monotonic() + PATIENCE_S
    while seeking.why_not == "late":
        assert time.monotonic() < end_s
        time.sleep(0.01)
    stream.answer("its own")
    room.ended(here)
    assert room.decisions()[0].reason == "unread"
