"""What the store promises, over SQLite and over PostgreSQL, to one process and to two."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

import pytest
import sqlalchemy as sa

from llm.conversation_access import STALE_S
from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import (
    Conversation,
    ConversationKey,
    ConversationState,
    Receipt,
    Turn,
    add_turn,
    bring_back,
    change_head,
    change_turn,
    clear,
    delete_turns,
    new_id,
    show,
)
from llm.conversations import KNOWN, ConversationStore
from llm.errors import (
    ConversationGoneError,
    OutOfMemoryError,
    Reason,
    ServerUnreachableError,
    StoreGoneError,
)
from llm.types import Finish, SamplingParams, Usage
from tests.driven_backend import at_once

Opened = Callable[..., ConversationStore]


def a_turn(name: str, parent: str = "", **values: object) -> Turn:
    turn = Turn(name, f"{name}?", "local", SamplingParams(), state="ended", parent=parent)
    return replace(turn, **values)  # type: ignore[arg-type]


@pytest.fixture
def opened(database_url: str) -> Iterator[Opened]:
    """Opens the database as one process more."""
    stores = []

    def opens(runner: str = "") -> ConversationStore:
        runner = runner or f"runner {len(stores)}"
        stores.append(ConversationStore(ConversationDatabase(database_url, runner)))
        return stores[-1]

    yield opens
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Opened) -> ConversationStore:
    return opened()


@pytest.fixture
def sql(database_url: str) -> Iterator[Callable[..., Any]]:
    """Says something to the database, past the store."""
    engine = sa.create_engine(database_url)

    def say(statement: str, **values: object) -> Any:
        with engine.begin() as connection:
            done = connection.execute(sa.text(statement), values)
            return done.all() if done.returns_rows else None

    yield say
    engine.dispose()


def key_of(owner: str = "somebody") -> ConversationKey:
    return ConversationKey(owner, new_id())


def begun(store: ConversationStore, name: str = "a", owner: str = "somebody") -> ConversationKey:
    key = key_of(owner)
    store.begin(key, add_turn(a_turn(f"{name}{key.conversation_id}", question=f"{name}?")))
    assert store.trouble is None
    return key


def there(store: ConversationStore, key: ConversationKey) -> ConversationState:
    state = store.state(key)
    assert state is not None
    return state


def read_anew(opened: Opened, key: ConversationKey, runner: str = "") -> ConversationState:
    state = opened(runner).state(key)
    assert state is not None
    return state


# What is written is read


MUCH = "海 sea 🌊\n" * 700_000  # over 10 MB


@pytest.mark.parametrize(
    "turn",
    [
        a_turn("plain"),
        a_turn("queued", state="queued", runner="me"),
        a_turn("running", state="running", runner="me", text="so far", reasoning="hm"),
        a_turn(
            "full",
            question="  为什么?\r\n\t👩‍👩‍👧 e\u0301 \x01\x7f\u2028\u202e'\";--%_\\",
            backend="vllm/a 'server'",
            model="m",
            system_prompt="Be brief. 🦊",
            person="x" * 255,
            text="```python\nprint('\\0')\n```",
            reasoning="…",
            params=SamplingParams(temperature=None, seed=3, stop=("\0", "\ud83d", "终")),
            receipt=Receipt("m", Finish("length", Usage(3, 4)), "s", 0.1, 2.5, 6, 7.125),
            error=None,
            continues="plain",
            created_s=1_764_480_000.123456,
            deleted_s=1_764_480_001.7654321,
        ),
        a_turn("huge", text=MUCH),
    ],
    ids=lambda turn: turn.turn_id,
)
def test_a_turn_is_read_as_it_was_written(
    opened: Opened, store: ConversationStore, turn: Turn
) -> None:
    key = key_of()
    written = store.begin(key, add_turn(turn))
    assert store.trouble is None
    assert read_anew(opened, key, "me") == written


def test_an_error_is_read_with_the_sentences_within_it(
    opened: Opened, store: ConversationStore
) -> None:
    inner = Reason("error-stalled", {"seconds": Reason("reason-at-most", {"limit": 0.5})})
    error = ServerUnreachableError(url="http://x/\0\ud83d", why=inner)
    key = key_of()
    store.begin(key, add_turn(a_turn("a", error=error)))
    found = read_anew(opened, key).turns["a"].error
    assert type(found) is ServerUnreachableError
    assert found.values == error.values


def test_what_no_database_takes_is_left_out_and_nothing_else(
    opened: Opened, store: ConversationStore
) -> None:
    odd = "a\0b\ud83dc\udc4dd 👍"
    key = key_of()
    names = ("question", "text", "reasoning", "system_prompt", "model", "person", "backend")
    store.begin(key, add_turn(a_turn("a", **dict.fromkeys(names, odd))))
    store.change(key, change_head(title=odd))
    assert store.trouble is None
    state = read_anew(opened, key)
    assert {getattr(state.turns["a"], name) for name in names} == {"abcd 👍"}
    assert state.head.title == "abcd 👍"


def test_the_head_is_read_as_it_was_written(opened: Opened, store: ConversationStore) -> None:
    key = key_of()
    head = Conversation(key, "T 🌍", "person", True, 1.5, 2.25, "a", None, "mark")
    store.begin(key, lambda state: replace(add_turn(a_turn("a"))(state), head=head))
    assert read_anew(opened, key).head == head


def test_turns_stay_in_the_order_in_which_they_came(
    opened: Opened, store: ConversationStore
) -> None:
    key = key_of()
    for name in ("c", "a", "b"):
        store.begin(key, add_turn(a_turn(name)))
    store.change(key, change_turn("c", lambda turn: replace(turn, text="changed")))
    assert list(read_anew(opened, key).turns) == ["c", "a", "b"]


def test_the_same_written_twice_is_there_once(opened: Opened, store: ConversationStore) -> None:
    key = begun(store)
    for _ in range(3):
        store.change(key, change_head(pinned=True))
    assert len(read_anew(opened, key).turns) == 1
    assert len(store.listed("somebody", 9)) == 1


def test_a_change_that_raises_changes_nothing(opened: Opened, store: ConversationStore) -> None:
    key = begun(store)
    before = store.state(key)

    def fails(state: ConversationState) -> ConversationState:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.change(key, fails)
    assert store.state(key) == before == read_anew(opened, key)


def test_looking_creates_nothing(store: ConversationStore) -> None:
    key = key_of()
    assert store.state(key) is None
    with pytest.raises(ConversationGoneError):
        store.change(key, change_head(pinned=True))
    assert store.listed("somebody", 9) == []
    assert store.state(key) is None


def test_a_row_that_somebody_damaged_is_read_as_far_as_it_can_be(
    opened: Opened, store: ConversationStore, sql: Callable[..., Any]
) -> None:
    key = begun(store)
    sql("UPDATE turns SET params = '{', receipt = 'x', error = :deep", deep="[" * 100_000)
    (turn,) = read_anew(opened, key).path()
    assert (turn.params, turn.receipt, turn.error) == (SamplingParams(), None, None)


def test_more_conversations_than_are_held_in_memory_are_all_there(
    store: ConversationStore,
) -> None:
    keys = [begun(store, str(number)) for number in range(KNOWN + 10)]
    assert len(store._known) == KNOWN
    assert all(store.state(key) is not None for key in keys)


# Whose they are


ODD = ["", "x" * 65, "a\0b", "\ud83d", "' OR 1=1 --", "%", "✓"]


def test_nobody_reads_anothers_conversation_by_any_way(store: ConversationStore) -> None:
    key = begun(store, "secret")
    guessed = ConversationKey("thief", key.conversation_id)
    before = store.state(key)
    assert store.state(guessed) is None
    assert store.elsewhere(guessed) == frozenset()
    assert store.listed("thief", 99) == []
    assert store.deleted("thief", 99) == []
    assert store.search("thief", "secret", 99) == []
    for change in (
        change_head(title="stolen"),
        change_head(deleted_s=1.0),
        clear(1.0),
        show("a"),
        bring_back(1.0),
        delete_turns(list(before.turns) if before else [], 1.0),
    ):
        with pytest.raises(ConversationGoneError):
            store.change(guessed, change)
    with pytest.raises(ConversationGoneError):
        store.begin(guessed, add_turn(a_turn("mine")))
    assert store.state(key) == before
    assert store.state(guessed) is None
    assert store.trouble is None


def test_an_id_that_is_taken_is_refused_in_another_process_too(
    opened: Opened, store: ConversationStore
) -> None:
    key = begun(store)
    with pytest.raises(ConversationGoneError):
        opened().begin(ConversationKey("thief", key.conversation_id), add_turn(a_turn("x")))
    assert len(read_anew(opened, key).turns) == 1


def test_nobody_stops_anothers_answer(store: ConversationStore, opened: Opened) -> None:
    key = key_of()
    store.begin(key, add_turn(a_turn("a", state="running", runner=store.runner)))
    other = opened()
    other.want_stop(ConversationKey("thief", key.conversation_id), "a")
    other.want_stop(key_of(), "a")
    assert store.keep(answering=True) == frozenset()
    other.want_stop(key, "a")
    assert store.keep(answering=True) == {"a"}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_id_or_owner_is_nobodys_and_troubles_nobody(
    store: ConversationStore, odd: str
) -> None:
    key = begun(store)
    for each in (ConversationKey("somebody", odd), ConversationKey(odd, key.conversation_id)):
        assert store.state(each) is None
        with pytest.raises(ConversationGoneError):
            store.change(each, change_head(pinned=True))
        store.want_stop(each, odd)
    for words in (odd, f'"{odd}'):
        store.search("somebody", words, 9)
    assert store.listed(odd, 9) == store.deleted(odd, 9) == store.search(odd, "a", 9) == []
    assert store.trouble is None
    assert store.state(key) is not None


# Lists


def test_the_list_has_the_pinned_first_then_the_latest_question(
    store: ConversationStore, opened: Opened
) -> None:
    keys = [key_of() for _ in range(5)]
    for number, key in enumerate(keys):
        store.begin(key, add_turn(a_turn(f"t{number}", created_s=100.0 + number)))
    store.change(keys[1], change_head(pinned=True))
    store.change(keys[3], change_head(deleted_s=9.0))
    store.begin(keys[0], add_turn(a_turn("again", "t0", created_s=200.0)))
    begun(store, owner="somebody else")
    expected = [keys[1], keys[0], keys[4], keys[2]]
    for each in (store, opened()):
        assert [head.key for head in each.listed("somebody", 9)] == expected
        assert [head.key for head in each.listed("somebody", 2, 1)] == expected[1:3]
        assert each.listed("somebody", 9, 4) == []
        assert [head.key for head in each.deleted("somebody", 9)] == [keys[3]]


def test_a_deleted_conversation_is_gone_until_it_is_restored(store: ConversationStore) -> None:
    first, second = begun(store), begun(store)
    store.change(first, change_head(deleted_s=5.0))
    store.change(second, change_head(deleted_s=6.0))
    assert store.state(first) is None
    assert [head.key for head in store.deleted("somebody", 9)] == [second, first]
    assert store.search("somebody", "a?", 9) == []
    store.change(first, change_head(deleted_s=None))
    assert store.state(first) is not None
    assert [head.key for head in store.listed("somebody", 9)] == [first]
    assert [head.key for head in store.deleted("somebody", 9)] == [second]


# Search


def test_words_are_found_in_titles_questions_and_answers_but_not_where_deleted(
    store: ConversationStore,
) -> None:
    key = begun(store, "elephant")
    (turn,) = there(store, key).path()
    for text in ("the giraffe", "the zebra"):
        store.change(key, change_turn(turn.turn_id, lambda t, text=text: replace(t, text=text)))

    def found(words: str) -> list[ConversationKey]:
        return [hit.head.key for hit in store.search("somebody", words, 9)]

    assert found("elephant") == [key]
    assert found("zebra") == [key]
    assert found("giraffe") == [], "it was written over"
    (hit,) = store.search("somebody", "zebra", 9)
    assert "zebra" in hit.snippet
    store.change(key, delete_turns([turn.turn_id], 5.0))
    assert found("zebra") == []
    store.change(key, bring_back(5.0))
    assert found("zebra") == [key]
    store.change(key, change_head(title="Okapi"))
    assert found("okapi") == [key]


def test_one_conversation_is_found_once(store: ConversationStore) -> None:
    key = begun(store, "first")
    for number in range(5):
        store.begin(key, add_turn(a_turn(f"t{number}", text="walrus")))
    assert [hit.head.key for hit in store.search("somebody", "walrus", 9)] == [key]


# Two processes


def test_changes_from_many_threads_and_two_processes_are_all_kept(
    opened: Opened, store: ConversationStore
) -> None:
    other, key = opened(), begun(store)
    counts = {store: 0, other: 0}

    def add(which: ConversationStore, thread: int) -> None:
        for number in range(8):
            turn = a_turn(f"{which.runner}-{thread}-{number}")

            def to_the_end(state: ConversationState, turn: Turn = turn) -> ConversationState:
                return add_turn(replace(turn, parent=state.head.leaf))(state)

            which.change(key, to_the_end)
            counts[which] += 1

    at_once(*[lambda w=which, t=thread: add(w, t) for which in counts for thread in range(3)])
    assert store.trouble is other.trouble is None
    state = read_anew(opened, key)
    assert len(state.turns) == 1 + sum(counts.values()) == 49
    assert len(state.path()) == 49, "each was added to the end as it was then"
    assert store.state(key) == other.state(key) == state


def test_a_change_is_made_again_on_what_another_wrote_in_between(
    opened: Opened, store: ConversationStore
) -> None:
    other, key = opened(), begun(store)
    store.state(key)
    seen = []

    def change(state: ConversationState) -> ConversationState:
        seen.append(state.head.title)
        if len(seen) == 1:
            other.change(key, change_head(title="meanwhile"))
        return change_head(pinned=True)(state)

    store.change(key, change)
    assert seen == ["a?", "meanwhile"]
    head = read_anew(opened, key).head
    assert (head.title, head.pinned) == ("meanwhile", True)


def test_two_processes_that_begin_the_same_conversation_both_have_their_turn(
    opened: Opened,
) -> None:
    one, other, key = opened(), opened(), key_of()
    at_once(
        lambda: one.begin(key, add_turn(a_turn("one"))),
        lambda: other.begin(key, add_turn(a_turn("other"))),
    )
    assert set(read_anew(opened, key).turns) == {"one", "other"}


def test_two_processes_that_begin_one_id_for_two_people_give_it_to_one(opened: Opened) -> None:
    one, other = opened(), opened()
    for number in range(5):
        own = new_id()
        keys = {store: ConversationKey(store.runner, own) for store in (one, other)}

        def begin(store: ConversationStore, keys: Any = keys, number: int = number) -> None:
            with suppress(ConversationGoneError):
                store.begin(keys[store], add_turn(a_turn(f"{number} {store.runner}")))

        at_once(lambda begin=begin: begin(one), lambda begin=begin: begin(other))
        assert sum(opened().state(key) is not None for key in keys.values()) == 1


def test_the_first_questions_of_many_people_at_once_are_all_kept(
    opened: Opened, store: ConversationStore
) -> None:
    keys = [key_of(f"person {number}") for number in range(12)]

    def ask(key: ConversationKey) -> None:
        store.begin(key, add_turn(a_turn(key.owner, state="running", runner=store.runner)))

    at_once(*[lambda key=key: ask(key) for key in keys])
    assert store.trouble is None
    other = opened()
    assert all(other.state(key) is not None for key in keys)


def answering_elsewhere(opened: Opened) -> tuple[ConversationStore, ConversationStore, Any]:
    """Two processes; the first is answering."""
    first, second, key = opened("first"), opened("second"), key_of()
    first.begin(key, add_turn(a_turn("a", state="running", runner="first")))
    return first, second, key


def test_an_answer_of_another_process_is_seen_as_it_grows_and_ends(opened: Opened) -> None:
    first, second, key = answering_elsewhere(opened)
    assert there(second, key).turns["a"].state == "running"
    assert second.elsewhere(key) == {"a"}
    assert first.elsewhere(key) == frozenset()
    first.change(key, change_turn("a", lambda t: replace(t, text="half")))
    assert there(second, key).turns["a"].text == "half"
    first.change(key, change_turn("a", lambda t: replace(t, text="whole", state="ended")))
    turn = there(second, key).turns["a"]
    assert (turn.state, turn.text, turn.receipt) == ("ended", "whole", None)
    assert second.elsewhere(key) == frozenset()


def silent(sql: Callable[..., Any], seconds: float) -> None:
    sql("UPDATE runners SET beat_s = beat_s - :seconds", seconds=seconds)


def test_an_answer_whose_process_fell_silent_is_interrupted_and_what_it_said_stays(
    opened: Opened, sql: Callable[..., Any]
) -> None:
    first, second, key = answering_elsewhere(opened)
    first.change(key, change_turn("a", lambda t: replace(t, text="half")))
    silent(sql, STALE_S / 3)
    assert there(second, key).turns["a"].state == "running"
    silent(sql, STALE_S)
    turn = there(second, key).turns["a"]
    assert turn.receipt is not None
    assert (turn.state, turn.text, turn.receipt.finish.reason) == ("ended", "half", "interrupted")
    assert second.elsewhere(key) == frozenset()


def test_an_answer_whose_process_was_only_slow_goes_on_and_ends_as_it_should(
    opened: Opened, sql: Callable[..., Any]
) -> None:
    first, second, key = answering_elsewhere(opened)
    silent(sql, 2 * STALE_S)
    assert there(second, key).turns["a"].state == "ended"
    second.begin(key, add_turn(a_turn("b", "a", state="running", runner="second")))
    receipt = Receipt("m", Finish("stop"))
    first.keep(answering=True)
    first.change(key, change_turn("a", lambda t: replace(t, text="half")))
    turns = there(second, key).turns
    assert (turns["a"].state, turns["a"].text) == ("running", "half")
    first.change(
        key, change_turn("a", lambda t: replace(t, state="ended", text="all", receipt=receipt))
    )
    state = read_anew(opened, key, "second")
    assert (state.turns["a"].text, state.turns["a"].receipt) == ("all", receipt)
    assert state.turns["b"].state == "running"


def test_a_process_that_takes_leave_leaves_nothing_running(opened: Opened) -> None:
    first, second, key = answering_elsewhere(opened)
    first.close()
    assert there(second, key).turns["a"].state == "ended"


def test_what_an_answer_had_said_when_its_process_was_killed_is_found(
    opened: Opened, sql: Callable[..., Any]
) -> None:
    first, second, key = answering_elsewhere(opened)
    first.change(key, change_turn("a", lambda t: replace(t, text="the walrus and 海象")))
    second.keep(answering=False)
    assert second.search(key.owner, "walrus", 9) == []
    silent(sql, STALE_S)
    later = opened("later")
    later.keep(answering=False)
    for words in ("walrus", "海象"):
        assert [hit.head.key for hit in later.search(key.owner, words, 9)] == [key]
    assert later.search("thief", "walrus", 9) == []
    assert sql("SELECT runner FROM runners") == []


def test_a_process_that_was_only_slow_has_all_of_its_answer_found(
    opened: Opened, sql: Callable[..., Any]
) -> None:
    first, second, key = answering_elsewhere(opened)
    first.change(key, change_turn("a", lambda t: replace(t, text="walrus")))
    silent(sql, STALE_S)
    second.keep(answering=False)
    first.keep(answering=True)
    assert sql("SELECT runner FROM runners") == [("first",)]
    first.change(key, change_turn("a", lambda t: replace(t, text="walrus, seal", state="ended")))
    assert [hit.head.key for hit in second.search(key.owner, "seal", 9)] == [key]


def test_what_was_left_when_a_process_took_leave_is_found(opened: Opened) -> None:
    first, second, key = answering_elsewhere(opened)
    first.change(key, change_turn("a", lambda t: replace(t, text="walrus")))
    first.close()
    assert [hit.head.key for hit in second.search(key.owner, "walrus", 9)] == [key]


def test_an_older_copy_of_the_database_loses_no_answer_that_is_under_way(
    opened: Opened, sql: Callable[..., Any]
) -> None:
    store, key, other = opened("me"), key_of(), key_of()
    for each in (key, other):
        store.begin(each, add_turn(a_turn(f"old {each.conversation_id}")))
    name = f"old {key.conversation_id}"
    store.begin(key, add_turn(a_turn("new", name, state="running", runner="me")))
    sql("DELETE FROM turns WHERE turn_id = 'new'")
    sql("UPDATE conversations SET leaf = :leaf, version = 1", leaf=name)
    store.change(key, change_turn("new", lambda t: replace(t, text="half")))
    store.keep(answering=True)
    state = read_anew(opened, key, "me")
    assert [turn.text for turn in state.path()] == ["", "half"]
    # And where it knows nothing of the whole conversation:
    sql("DELETE FROM turns")
    sql("DELETE FROM conversations")
    store.change(key, change_turn("new", lambda t: replace(t, text="whole")))
    store.keep(answering=True)
    state = read_anew(opened, key, "me")
    assert [turn.text for turn in state.path()] == ["", "whole"]
    assert store.state(other) is None


def test_while_one_thread_waits_for_the_database_others_read(
    store: ConversationStore,
) -> None:
    """A write that waits for somebody's lock holds up nobody else's conversation."""
    key, other = begun(store), begun(store)
    inside, go_on = threading.Event(), threading.Event()

    def slow(state: ConversationState) -> ConversationState:
        inside.set()
        assert go_on.wait(30)
        return change_head(pinned=True)(state)

    thread = threading.Thread(target=lambda: store.change(key, slow))
    thread.start()
    assert inside.wait(30)
    store.change(other, change_head(pinned=True))
    assert store.listed("somebody", 9)[0].key == other
    go_on.set()
    thread.join(30)
    assert not thread.is_alive()


def test_a_value_that_is_refused_troubles_only_its_own_conversation(
    store: ConversationStore, opened: Opened
) -> None:
    key, other = begun(store), begun(store)
    taken = next(iter(there(store, other).turns))
    store.change(key, add_turn(a_turn(taken, error=OutOfMemoryError(model="m"))))
    assert store.trouble is None
    assert store.trouble_with(key) is not None
    assert store.trouble_with(other) is None
    store.keep(answering=False)
    store.change(other, change_head(title="goes on"))
    assert read_anew(opened, other).head.title == "goes on"
    assert store.trouble is None
    assert store.trouble_with(key) is not None
    assert taken in there(store, key).turns


# What happens in between


def test_a_database_that_goes_just_when_another_process_wrote_takes_nothing_away(
    opened: Opened, store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, other = begun(store), opened()
    there(store, key)

    def change(state: ConversationState) -> ConversationState:
        if state.head.title == "a?":
            other.change(key, change_head(title="meanwhile"))
            # From here on nothing can be read.
            monkeypatch.setattr(ConversationDatabase, "version", gone)
            monkeypatch.setattr(ConversationDatabase, "load", gone)
            monkeypatch.setattr(ConversationDatabase, "listed", gone)
        return change_turn(f"a{key.conversation_id}", lambda t: replace(t, text="kept"))(state)

    def gone(*args: object, **kwargs: object) -> NoReturn:
        raise StoreGoneError(place="somewhere")

    with monkeypatch.context() as monkeypatch:
        after = store.change(key, change_head(pinned=True)) and store.change(key, change)
        assert [turn.text for turn in after.path()] == ["kept"]
        assert [turn.text for turn in there(store, key).path()] == ["kept"]
    store.keep(answering=False)
    assert store.trouble is None
    saved = read_anew(opened, key)
    assert [turn.text for turn in saved.path()] == ["kept"]
    assert (saved.head.title, saved.head.pinned) == ("meanwhile", True)


def test_questions_that_were_cleared_away_unanswered_are_not_held_for_ever(
    store: ConversationStore,
) -> None:
    for number in range(KNOWN + 20):
        key = begun(store, str(number))
        queued = a_turn(f"q{number}", state="queued", runner=store.runner)
        store.change(key, add_turn(queued))
        if number % 2:
            store.change(key, clear(2.0))
        else:
            store.change(key, change_head(deleted_s=2.0))
    begun(store, "one more")
    assert len(store._known) <= KNOWN


def test_what_another_process_answers_is_not_read_anew_while_nothing_changes(
    opened: Opened, store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = opened()
    key = begun(other)
    other.change(key, add_turn(a_turn("r", state="running", runner=other.runner)))
    assert there(store, key).turns["r"].state == "running"
    loads = []
    load = ConversationDatabase.load
    monkeypatch.setattr(
        ConversationDatabase, "load", lambda *told, **more: loads.append(1) or load(*told, **more)
    )
    assert there(store, key).turns["r"].state == "running"
    assert store.elsewhere(key) == {"r"}
    assert loads == []
    other.change(key, change_turn("r", lambda t: replace(t, text="more")))
    assert there(store, key).turns["r"].text == "more"
    assert len(loads) == 1
