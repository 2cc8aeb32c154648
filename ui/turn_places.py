"""Which place on the page each turn has.

While a run follows an answer, a container drawn where another turn's was takes over what stood in
that one, and shows it until the run ends. So then a turn that goes leaves its place empty, and
another comes into a place that none has had.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_EMPTY = 10
"""With more, the places are given anew as soon as nothing runs."""


def places(
    before: Sequence[str], shown: Sequence[str], *, at_rest: bool
) -> tuple[list[str], set[int]]:
    """The places of these turns, in their order.

    Args:
        before: whose each place was, in use or not; what an earlier call returned.
        at_rest: whether the run is over soon, and with it what was left standing.

    Returns:
        Whose each place is, and which of them are in use.
    """
    whose, used, at = list(before), set[int](), 0
    for turn_id in shown:
        if turn_id in whose[at:]:
            at = whose.index(turn_id, at)
        else:
            at = len(whose)
            whose.append(turn_id)
        used.add(at)
        at += 1
    if at_rest and len(whose) - len(used) > MOST_EMPTY:
        return list(shown), set(range(len(shown)))
    return whose, used
