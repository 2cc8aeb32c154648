"""How long somebody in line has yet to wait, told by what answers really took lately."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

REMEMBERED = 20
"""Answers that count: enough for a mean, few enough to follow a model that was changed."""

BEYOND = 0.5
"""An answer that is longer than any known one is guessed to go on for half as long again."""

FEW = 5
"""Fewer answers than these say little of the next one, which may well take twice the longest."""

RISE_S, RISE = 5.0, 0.5
"""A figure once told goes up before it has run out only where it is short by more than both of
these: seconds, and a part of what is expected now."""
FALL_S, FALL = 2.0, 0.7
"""It falls out of step with the clock only where it is too long by more than both: seconds, and a
part of itself. One that jumps about is believed by nobody."""
OUT_S, MOMENT_S = 1.5, 5.0
"""What is no more than the one has run out; what is yet expected is told anew where it is more
than the other, or where it was to be any moment for twice as long."""
TELL_MORE = 1.25
"""A figure that rises says so much more than is expected: it must not have to rise again."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One answer, as far as its time in a slot goes.

    Args:
        max_tokens: the most it may have.
        running_s: how long it has been running; 0 for one that waits.
    """

    max_tokens: int
    running_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Past:
    taken_s: float
    ttft_s: float | None
    tokens_per_s: float | None


class RecentAnswers:
    """What a backend's last answers took, and what others may be expected to take.

    Nothing is expected before the first answer is over. An expected time is the mean of the
    remembered ones; of an answer that is running, the mean of those that took longer than it has
    been running for, less that time (the mean residual life of their distribution). Where several
    run at once how long one takes hangs on how many there are beside it, so of the remembered only
    the longer half counts. While few are known, twice the longest is expected. Nothing is longer
    than the answer's `max_tokens` take at the speed seen lately.

    Source: the estimate of remaining life is that of reliability theory; see
    https://en.wikipedia.org/wiki/Residual_life

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._past: deque[_Past] = deque(maxlen=REMEMBERED)

    def learn(
        self, taken_s: float, ttft_s: float | None = None, tokens_per_s: float | None = None
    ) -> None:
        """An answer has held a slot for `taken_s`, by whichever end.

        Args:
            ttft_s: of these, until its first text; None where none came.
            tokens_per_s: its decode speed; None where nobody counted.
        """
        with self._lock:
            self._past.append(_Past(taken_s, ttft_s, tokens_per_s))

    def wait_s(self, running: Sequence[Asked], ahead: Sequence[Asked], slots: int) -> float | None:
        """How long until somebody behind all of these has a slot; None while nothing is known.

        Args:
            running: what is being answered; may be more than there are slots now.
            ahead: who is in line before, in their order.
            slots: how many answers may run at once, at least 1.
        """
        with self._lock:
            if not self._past:
                return None
            expected = _Expected(self._past, beside_others=slots > 1)
        # With more running than there are slots, the first that end free none.
        free_s = sorted(expected.left_s(one) for one in running)[-slots:]
        free_s = [0.0] * (slots - len(free_s)) + free_s
        for one in ahead:
            heapq.heapreplace(free_s, free_s[0] + expected.left_s(one))
        return free_s[0]


class _Expected:
    """What can be said of answers from these; worked out once for a whole line."""

    def __init__(self, past: Iterable[_Past], *, beside_others: bool) -> None:
        past = tuple(past)
        self._taken_s = sorted(each.taken_s for each in past)
        if len(self._taken_s) < FEW:
            self._taken_s = [2 * self._taken_s[-1]]
        elif beside_others:
            self._taken_s = self._taken_s[len(self._taken_s) // 2 :]
        self._mean_s = fmean(self._taken_s)
        ttfts_s = [each.ttft_s for each in past if each.ttft_s is not None]
        speeds = [each.tokens_per_s for each in past if each.tokens_per_s]
        self._ttft_s = median(ttfts_s) if ttfts_s else 0.0
        self._tokens_per_s = median(speeds) if speeds else 0.0

    def left_s(self, one: Asked) -> float:
        """How long an answer will yet hold its slot."""
        left_s = self._mean_s if one.running_s <= 0 else self._residual_s(one.running_s)
        if not self._tokens_per_s:
            return left_s
        most_s = self._ttft_s + one.max_tokens / self._tokens_per_s
        return max(0.0, min(left_s, most_s - one.running_s))

    def _residual_s(self, running_s: float) -> float:
        longer_s = [taken_s for taken_s in self._taken_s if taken_s > running_s]
        return fmean(longer_s) - running_s if longer_s else running_s * BEYOND


class Countdown:
    """The figure one person is told: goes down with the clock, and is corrected where it's wrong.

    Downward where it is far too long. Upward once where it is far too short, and from then on only
    when it has run out: by then whoever reads it knows as well.

    Thread-safety: none; its owner's lock guards it.
    """

    def __init__(self) -> None:
        self._due_s: float | None = None
        self._has_risen = False

    def left_s(self, expected_s: float | None, now_s: float) -> float | None:
        """The seconds to tell now; below 0 once they are over, None where nothing is expected.

        Args:
            expected_s: what is expected now.
        """
        if expected_s is None:
            self._due_s, self._has_risen = None, False
            return None
        if self._due_s is None:
            self._due_s = now_s + expected_s
        told_s = self._due_s - now_s
        if told_s - expected_s > max(FALL_S, FALL * told_s):
            self._due_s = now_s + expected_s
        elif self._rises(told_s, expected_s):
            self._due_s = now_s + TELL_MORE * expected_s
        return self._due_s - now_s

    def _rises(self, told_s: float, expected_s: float) -> bool:
        if told_s <= OUT_S:
            return expected_s > (FALL_S if told_s < -2 * MOMENT_S else MOMENT_S)
        if self._has_risen:
            return False
        self._has_risen = expected_s - told_s > max(RISE_S, RISE * expected_s)
        return self._has_risen
