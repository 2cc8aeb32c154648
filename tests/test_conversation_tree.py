"""A conversation as a tree: which branch is shown, what stands beside it, what is deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llm.conversation_merge import merged
from llm.conversation_tree import (
    MAX_TITLE_CHARS,
    Change,
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
    could_be_id,
    delete_turns,
    ended,
    history_messages,
    interrupted,
    new_id,
    show,
    title_of,
)
from llm.errors import StalledError
from llm.types import Finish, Message, SamplingParams

KEY = ConversationKey("somebody", "here")


def a_turn(name: str, parent: str = "", **values: object) -> Turn:
    turn = Turn(name, f"{name}?", "local", SamplingParams(), state="ended", parent=parent)
    return replace(turn, **values)  # type: ignore[arg-type]


def made(*changes: Change) -> ConversationState:
    state = ConversationState(Conversation(KEY))
    for change in changes:
        state = change(state)
    return state


def grown(*edges: str) -> ConversationState:
    """A tree of turns, each written as `parent>turn`, in the order in which they were added."""
    pairs = [edge.split(">") for edge in edges]
    return made(*[add_turn(a_turn(name, parent)) for parent, name in pairs])


def damaged(leaf: str, *edges: str) -> ConversationState:
    """The same, put together without looking."""
    pairs = [edge.split(">") for edge in edges]
    turns = {name: a_turn(name, parent) for parent, name in pairs}
    return ConversationState(Conversation(KEY, leaf=leaf), turns)


def shown(state: ConversationState) -> str:
    return "".join(turn.turn_id for turn in state.path())


# Paths and variants


def test_what_was_added_last_is_shown_with_what_leads_to_it() -> None:
    state = grown(">a", "a>b", "b>c", "a>d")
    assert shown(state) == "ad"
    assert "".join(turn.turn_id for turn in state.path_to("c")) == "abc"
    assert state.path_to("unknown") == ()
    assert shown(made()) == ""


def test_variants_are_all_that_stand_in_the_same_place_oldest_first() -> None:
    state = grown(">a", ">x", "a>b", "a>c", "c>d", "x>y")
    assert state.variants() == {"x": ("a", "x"), "y": ("y",)}
    assert show("a")(state).variants() == {"a": ("a", "x"), "c": ("b", "c"), "d": ("d",)}


def test_showing_a_variant_shows_the_newest_branch_through_it() -> None:
    state = grown(">a", "a>b", "b>c", "b>d", "a>e")
    assert shown(show("b")(state)) == "abd"
    assert shown(show("c")(state)) == "abc"
    assert show("unknown")(state) is state


def test_nothing_that_is_deleted_is_shown_on_demand() -> None:
    state = delete_turns(["b"], 5.0)(grown(">a", "a>b", "a>c"))
    assert show("b")(state) is state


def test_a_turn_added_changes_what_the_list_shows() -> None:
    state = made(add_turn(a_turn("a", created_s=5.0)), add_turn(a_turn("b", "a", created_s=3.0)))
    head = state.head
    assert (head.title, head.title_by) == ("a?", "question")
    assert (head.created_s, head.updated_s, head.leaf) == (5.0, 5.0, "b")


def test_a_question_in_a_deleted_conversation_brings_it_back() -> None:
    gone = change_head(deleted_s=7.0)(grown(">a"))
    assert add_turn(a_turn("b", "a"))(gone).head.deleted_s is None


def test_changing_an_unknown_turn_changes_nothing() -> None:
    state = grown(">a")
    assert change_turn("unknown", interrupted)(state) is state


def test_earlier_states_stay_as_they_were() -> None:
    before = grown(">a", "a>b")
    add_turn(a_turn("c", "b"))(before)
    clear(5.0)(before)
    change_turn("a", lambda turn: replace(turn, text="changed"))(before)
    assert before == grown(">a", "a>b")


# Deleting and bringing back


def test_what_follows_a_deleted_turn_follows_the_one_before_it() -> None:
    state = delete_turns(["b"], 5.0)(grown(">a", "a>b", "b>c"))
    assert shown(state) == "ac"
    assert state.variants() == {"a": ("a",), "c": ("c",)}
    assert shown(delete_turns(["a"], 6.0)(state)) == "c"


def test_deleting_the_last_variant_shows_the_one_beside_it() -> None:
    state = grown(">a", "a>b", "a>c", "c>d")
    assert shown(delete_turns(["c", "d"], 5.0)(state)) == "ab"
    first = delete_turns(["x"], 5.0)(grown(">a", "a>b", ">x"))
    assert shown(first) == "ab"


def test_deleting_what_isnt_shown_changes_nothing_that_is() -> None:
    state = grown(">a", "a>b", "a>c")
    assert shown(delete_turns(["b"], 5.0)(state)) == "ac"


def test_deleting_what_is_gone_or_unknown_is_no_change() -> None:
    state = delete_turns(["b"], 5.0)(grown(">a", "a>b"))
    assert delete_turns(["b", "unknown"], 6.0)(state) is state
    assert clear(6.0)(clear(5.0)(state)).last_deleted_s() == 5.0


def test_what_was_deleted_together_comes_back_together_and_nothing_else() -> None:
    state = grown(">a", "a>b", "b>c", "c>d")
    state = delete_turns(["b"], 1.0)(state)
    state = delete_turns(["c", "d"], 2.0)(state)
    assert state.last_deleted_s() == 2.0
    assert shown(bring_back(2.0)(state)) == "acd"
    assert shown(bring_back(1.0)(state)) == "ab"
    assert bring_back(3.0)(state) is state


def test_clear_takes_every_branch_and_bringing_back_shows_the_same_as_before() -> None:
    before = show("b")(grown(">a", "a>b", "a>c", ">x"))
    cleared = clear(5.0)(before)
    assert cleared.live() == ()
    assert shown(cleared) == ""
    assert cleared.variants() == {}
    assert bring_back(5.0)(cleared) == before


def test_what_is_brought_back_after_a_new_question_is_shown_and_the_new_one_reachable() -> None:
    state = add_turn(a_turn("n"))(clear(5.0)(grown(">a", "a>b")))
    assert shown(state) == "n"
    back = bring_back(5.0)(state)
    assert shown(back) == "ab"
    assert back.variants()["a"] == ("a", "n")


def test_bringing_back_a_variant_shows_it() -> None:
    state = delete_turns(["c"], 5.0)(grown(">a", "a>b", "a>c"))
    assert shown(state) == "ab"
    assert shown(bring_back(5.0)(state)) == "ac"


# Damage


@pytest.mark.parametrize(
    ("state", "path"),
    [
        (damaged("b", "b>a", "a>b"), "ab"),
        (damaged("a", "a>a"), "a"),
        (damaged("c", "c>a", "a>b", "b>c"), "abc"),
        (damaged("b", "missing>a", "a>b"), "ab"),
        (damaged("missing", ">a"), ""),
    ],
)
def test_a_damaged_tree_shows_what_it_can(state: ConversationState, path: str) -> None:
    assert shown(state) == path
    for turn_id, variants in state.variants().items():
        assert turn_id in variants
    for turn_id in state.turns:
        assert state.newest_below(turn_id) in state.turns
        assert turn_id in {turn.turn_id for turn in show(turn_id)(state).path()}
        assert shown(delete_turns([turn_id], 5.0)(state)) != shown(state) or not path
    assert clear(5.0)(state).path() == ()
    assert bring_back(5.0)(clear(5.0)(state)).turns == state.turns


def test_a_ring_beside_a_whole_tree_doesnt_change_what_it_shows() -> None:
    state = damaged("y", ">x", "x>y", "b>a", "a>b")
    assert shown(state) == "xy"
    assert state.variants() == {"x": ("x",), "y": ("y",)}
    ring = show("a")(state)
    assert set(shown(ring)) == {"a", "b"}
    assert all(turn_id in beside for turn_id, beside in ring.variants().items())


def test_where_all_but_a_ring_is_deleted_the_ring_is_shown() -> None:
    state = delete_turns(["x"], 5.0)(damaged("x", ">x", "b>a", "a>b"))
    assert set(shown(state)) == {"a", "b"}


def test_a_long_conversation_is_walked_without_recursion() -> None:
    edges = [f"{number}>{number + 1}" for number in range(1, 3000)]
    state = damaged("3000", ">1", *edges)
    assert len(state.path()) == 3000
    assert state.newest_below("1") == "3000"
    assert len(state.variants()) == 3000


# What the model is told


def test_history_alternates_and_has_no_reasoning() -> None:
    turns = (
        a_turn("one", text="yes"),
        a_turn("failed", error=StalledError(seconds=60)),
        a_turn("blank", text=" \n "),
        a_turn("running", state="running", text="half"),
        a_turn("queued", state="queued"),
        a_turn("model first", question=" ", text="Welcome"),
        a_turn("two", text="partial", error=StalledError(seconds=60)),
        a_turn("three", text="said", reasoning="thought"),
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


def test_an_interrupted_turn_keeps_its_text() -> None:
    turn = interrupted(a_turn("a", state="running", text="half", reasoning="thought", model="m"))
    assert (turn.state, turn.text, turn.reasoning) == ("ended", "half", "thought")
    assert turn.receipt == Receipt("m", Finish("interrupted"))


# Titles and ids


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("  Why is\n\tthe sky  blue? ", "Why is the sky blue?"),
        ("x" * MAX_TITLE_CHARS, "x" * MAX_TITLE_CHARS),
        ("x" * (MAX_TITLE_CHARS + 1), "x" * (MAX_TITLE_CHARS - 1) + "…"),
        (f"{'x' * (MAX_TITLE_CHARS - 2)} yz", "x" * (MAX_TITLE_CHARS - 2) + "…"),
        ("为什么\u3000天空", "为什么 天空"),
        ("\u202eturned \u200bround\u202c", "turned round"),
        ("\u200b\ufeff", ""),
        ("👩\u200d🚀 flies", "👩\u200d🚀 flies"),
    ],
)
def test_a_title_is_the_questions_beginning_on_one_line(question: str, title: str) -> None:
    assert title_of(question) == title


def test_ids_cannot_be_guessed() -> None:
    ids = {new_id() for _ in range(500)}
    assert len(ids) == 500
    # 22 letters of an alphabet of 64 are 128 bits.
    assert all(could_be_id(each) and len(each) == 22 for each in ids)
    assert not any(map(could_be_id, ["", "guessed", "x" * 23, "é" * 22, "x" * 21 + "/"]))


# What two changed


def test_what_two_changed_in_different_places_is_both() -> None:
    base = grown(">a", "a>b")
    ours = change_head(pinned=True)(add_turn(a_turn("c", "b"))(base))
    theirs = change_head(title="T", title_by="person")(delete_turns(["a"], 5.0)(base))
    both = merged(base, ours, theirs)
    assert (both.head.pinned, both.head.title, both.head.leaf) == (True, "T", "c")
    assert shown(both) == "bc"
    assert both.turns["a"].deleted_s == 5.0


def test_what_two_changed_in_one_turn_is_both() -> None:
    base = grown(">a")
    ours = change_turn("a", lambda turn: replace(turn, text="more"))(base)
    theirs = delete_turns(["a"], 5.0)(base)
    assert merged(base, ours, theirs).turns["a"] == replace(
        base.turns["a"], text="more", deleted_s=5.0
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "title"),
    [
        ("question", "question", "theirs"),
        ("model", "question", "ours"),
        ("question", "person", "theirs"),
        ("model", "person", "theirs"),
        ("person", "person", "ours"),
    ],
)
def test_of_two_titles_the_better_given_one_counts(ours: str, theirs: str, title: str) -> None:
    base = ConversationState(Conversation(KEY))
    one, other = (
        change_head(title=name, title_by=by)(grown(f">{name}"))
        for name, by in (("ours", ours), ("theirs", theirs))
    )
    both = merged(base, one, other)
    assert both.head.title == title
    assert list(both.turns) == ["theirs", "ours"]
    assert both.head.leaf == "ours"
