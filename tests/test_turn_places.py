"""Which place on the page each turn has, while a run follows an answer and at rest."""

from __future__ import annotations

from ui.turn_places import MOST_EMPTY, places


def test_a_turn_that_goes_leaves_its_place_empty() -> None:
    assert places(["a", "b", "c"], ["a", "c"], at_rest=False) == (["a", "b", "c"], {0, 2})


def test_another_turn_comes_into_a_place_that_none_has_had() -> None:
    whose, used = places(["a", "b", "c"], ["a", "d"], at_rest=False)
    assert (whose, used) == (["a", "b", "c", "d"], {0, 3})
    # Back again: their own places are in the right order.
    assert places(whose, ["a", "b", "c"], at_rest=False) == (["a", "b", "c", "d"], {0, 1, 2})


def test_the_order_is_that_of_the_conversation_whatever_was_there_before() -> None:
    whose, used = places(["b", "c"], ["a", "b", "c"], at_rest=False)
    assert [whose[at] for at in sorted(used)] == ["a", "b", "c"]
    assert min(used) > 1


def test_at_rest_many_empty_places_are_given_up() -> None:
    gone = [f"gone-{number}" for number in range(MOST_EMPTY + 1)]
    assert places([*gone, "a"], ["a"], at_rest=True) == (["a"], {0})
    assert places([*gone, "a"], ["a"], at_rest=False) == ([*gone, "a"], {MOST_EMPTY + 1})
    assert places([*gone[1:], "a"], ["a"], at_rest=True) == ([*gone[1:], "a"], {MOST_EMPTY})
