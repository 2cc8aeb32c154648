"""Conversations: found by an unguessable id, in order, and given up only when idle."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from llm.conversations import ConversationStore, Receipt, Turn, ended, history_messages
from llm.errors import StalledError
from llm.types import Finish, Message, SamplingParams
from tests.driven_backend import at_once


def a_turn(name: str, **values: object) -> Turn:
    return replace(
        Turn(turn_id=name, question=f"{name}?", backend="local", params=SamplingParams()),
        **values,  # type: ignore[arg-type]
    )


def an_answered_turn(name: str, text: str = "yes") -> Turn:
    return a_turn(name, state="ended", text=text)


@pytest.fixture
def store() -> ConversationStore:
    return ConversationStore()


def test_ids_cannot_be_guessed(store: ConversationStore) -> None:
    ids = {store.new_id() for _ in range(500)}
    assert len(ids) == 500
    # 22 letters of an alphabet of 64 are 128 bits.
    assert all(len(each) >= 22 for each in ids)
    assert all(each.replace("-", "").replace("_", "").isalnum() for each in ids)


def begun(store: ConversationStore) -> str:
    """A conversation with one ended turn."""
    here = store.new_id()
    store.add(here, an_answered_turn("first"))
    return here


def test_a_conversation_begins_with_its_first_turn(store: ConversationStore) -> None:
    here = store.new_id()
    assert not store.exists(here), "visits that ask nothing leave nothing behind"
    store.add(here, a_turn("a"))
    assert store.exists(here)
    assert not store.exists("guessed")
    assert store.turns("guessed") == ()
    assert not store.exists("guessed"), "looking must not create"


def test_turns_stay_in_the_order_in_which_they_came(store: ConversationStore) -> None:
    here = store.new_id()
    for name in ("c", "a", "b"):
        store.add(here, a_turn(name))
    store.change(here, "c", lambda turn: replace(turn, text="changed"))
    assert [turn.turn_id for turn in store.turns(here)] == ["c", "a", "b"]


def test_turns_looked_at_earlier_do_not_change(store: ConversationStore) -> None:
    here = store.new_id()
    store.add(here, a_turn("a"))
    before = store.turns(here)
    store.change(here, "a", lambda turn: replace(turn, text="changed"))
    store.add(here, a_turn("b"))
    assert before == (a_turn("a"),)


def test_change_returns_the_turn_as_it_is_now(store: ConversationStore) -> None:
    here = store.new_id()
    store.add(here, a_turn("a"))
    changed = store.change(here, "a", lambda turn: replace(turn, text="hello"))
    assert changed == a_turn("a", text="hello")
    assert store.turns(here) == (changed,)


def test_changing_a_cleared_turn_is_none_and_does_not_bring_it_back(
    store: ConversationStore,
) -> None:
    here = store.new_id()
    store.add(here, a_turn("a"))
    store.clear(here)
    assert store.change(here, "a", lambda turn: turn) is None
    assert store.turns(here) == ()
    assert store.change("guessed", "a", lambda turn: turn) is None
    assert not store.exists("guessed")


def test_a_change_that_raises_changes_nothing(store: ConversationStore) -> None:
    here = store.new_id()
    store.add(here, a_turn("a"))
    with pytest.raises(ZeroDivisionError):
        store.change(here, "a", lambda turn: replace(turn, text=str(1 / 0)))
    assert store.turns(here) == (a_turn("a"),)


def test_clear_keeps_the_id_and_other_conversations(store: ConversationStore) -> None:
    here, other = store.new_id(), store.new_id()
    for conversation in (here, other):
        store.add(conversation, a_turn("a"))
    store.clear(here)
    store.clear("guessed")
    assert store.exists(here)
    assert store.turns(here) == ()
    assert store.turns(other) == (a_turn("a"),)
    assert not store.exists("guessed")


def test_remove_takes_out_one_turn_and_minds_nothing_unknown(store: ConversationStore) -> None:
    here = store.new_id()
    for name in ("a", "b"):
        store.add(here, a_turn(name))
    store.remove(here, "a")
    store.remove(here, "a")
    store.remove("guessed", "a")
    assert store.turns(here) == (a_turn("b"),)


def test_the_least_recently_used_conversation_is_given_up_first() -> None:
    store = ConversationStore(max_conversations=3)
    first, second, third = (begun(store) for _ in range(3))
    store.turns(first)
    fourth = begun(store)
    assert not store.exists(second)
    assert all(store.exists(each) for each in (first, third, fourth))


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_conversation_with_an_open_turn_is_never_given_up(state: str) -> None:
    store = ConversationStore(max_conversations=2)
    busy = store.new_id()
    store.add(busy, an_answered_turn("a"))
    store.add(busy, a_turn("b", state=state))
    others = [begun(store) for _ in range(5)]
    assert store.exists(busy)
    assert [store.exists(each) for each in others] == [False] * 4 + [True]
    store.change(busy, "b", lambda turn: replace(turn, state="ended"))
    begun(store)
    begun(store)
    assert not store.exists(busy), "it is idle now, and the oldest"


def test_where_all_are_busy_none_is_given_up() -> None:
    store = ConversationStore(max_conversations=2)
    busy = [f"conversation {number}" for number in range(5)]
    for conversation in busy:
        store.add(conversation, a_turn("a", state="running"))
    assert all(store.exists(conversation) for conversation in busy)
    # Those over the limit go once they are idle.
    for conversation in busy:
        store.change(conversation, "a", lambda turn: replace(turn, state="ended"))
    last = begun(store)
    assert [store.exists(each) for each in (*busy, last)] == [False] * 4 + [True] * 2


def test_changes_from_many_threads_are_all_kept(store: ConversationStore) -> None:
    here = store.new_id()
    store.add(here, a_turn("a"))

    def add_hundred() -> None:
        for _ in range(100):
            store.change(here, "a", lambda turn: replace(turn, text=turn.text + "x"))
            store.add(here, a_turn(f"{threading.get_ident()}"))

    at_once(*[add_hundred] * 8)
    assert store.turns(here)[0].text == "x" * 800


def test_history_alternates_and_has_no_reasoning() -> None:
    turns = (
        an_answered_turn("one"),
        a_turn("failed", state="ended", error=StalledError(seconds=60)),
        an_answered_turn("blank", text=" \n "),
        a_turn("running", state="running", text="half"),
        a_turn("queued"),
        a_turn("two", state="ended", text="partial", error=StalledError(seconds=60)),
        a_turn("three", state="ended", text="said", reasoning="thought"),
    )
    assert history_messages(turns, "Be brief.") == (
        Message("system", "Be brief."),
        Message("user", "one?"),
        Message("assistant", "yes"),
        Message("user", "two?"),
        Message("assistant", "partial"),
        Message("user", "three?"),
        Message("assistant", "said"),
    )


def test_a_blank_system_prompt_isnt_told() -> None:
    assert history_messages((), " ") == ()


def test_an_ended_turn_keeps_its_question_and_choices() -> None:
    turn = a_turn("a", state="running", text="ha", system_prompt="Be brief.")
    receipt, error = Receipt("m", Finish("error")), StalledError(seconds=60)
    assert ended(turn, "half", "thought", receipt, error) == replace(
        turn, state="ended", text="half", reasoning="thought", receipt=receipt, error=error
    )


def test_characters_are_limited_too_and_the_newest_conversation_stays() -> None:
    store = ConversationStore(max_chars=1000)
    old = begun(store)
    big = store.new_id()
    store.add(big, a_turn("a", text="x" * 5000, state="ended"))
    assert not store.exists(old)
    assert store.turns(big)[0].text == "x" * 5000
    begun(store)
    assert not store.exists(big)
