"""How many frames may be on their way to one browser, by the browser's own word.

Every so often a frame carries a number (a stamp) that the page shows unseen. Once it is painted the
browser says so, and that is the credit for more: a slow screen, or a slow line to it, gets fewer
frames with more in each, and no buffer between server and screen fills up.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

UNPAINTED = 2
"""So many stamped frames may be under way."""
SLOW_S = 0.5
"""Where it takes this long until a frame is told to be painted, one may: what a click brings would
stand behind them."""
STAMP_S = 0.5
"""The most seconds between stamps while frames come."""
STAMP_CHARS = 4000
"""A frame that brings what was sent since the last stamp to this many characters carries one."""
_MOST_TIMES = 64
"""Of a browser that says nothing, only the newest stamps' times are known."""
SILENT_S = 2.0
"""A browser that owes its word gets a frame every so often all the same: words may be lost."""
HIDDEN_S = 5.0
"""A hidden tab gets a frame every so often."""


class FrameCredit:
    """What one person's browser has been sent, and what of it has been painted.

    A browser that never spoke (blocked, old, none) isn't waited for.

    Thread-safety: frames come from the script's thread, reports from the server's; both lock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._heard = False
        self._hidden = False
        self._stamp = 0
        self._painted = 0
        self._chars = 0
        self._stamp_s = float("-inf")
        self._sent_s = float("-inf")
        self._lag_s: float | None = None
        self._sent_at_s: OrderedDict[int, float] = OrderedDict()
        self._slow = False

    @property
    def heard(self) -> bool:
        """Whether the browser has ever said anything."""
        with self._changed:
            return self._heard

    @property
    def hidden(self) -> bool:
        """Whether the tab is out of sight, as far as the browser has said."""
        with self._changed:
            return self._hidden

    @property
    def lag_s(self) -> float | None:
        """Seconds from the newest stamp's sending to the word that it was painted; None before."""
        with self._changed:
            return self._lag_s

    def delay_s(self) -> float:
        """Seconds until a frame may be sent, if the browser says nothing until then."""
        with self._changed:
            most = 1 if self._slow else UNPAINTED
            waited = self._stamp - self._painted >= most and self._heard
            if not waited and not self._hidden:
                return 0.0
            pause_s = HIDDEN_S if self._hidden else SILENT_S
            return max(0.0, self._sent_s + pause_s - self._clock())

    def sent(self, chars: int, *, last: bool = False) -> int | None:
        """Note that a frame is sent now.

        Args:
            chars: what it carries.
            last: whether none follows soon; such a one is stamped in any case.

        Returns:
            The stamp to show with it, or None.
        """
        with self._changed:
            now = self._sent_s = self._clock()
            self._chars += chars
            due = now - self._stamp_s >= STAMP_S or self._chars >= STAMP_CHARS
            if not (due or last):
                return None
            self._stamp += 1
            self._stamp_s, self._chars, self._lag_s = now, 0, None
            self._sent_at_s[self._stamp] = now
            while len(self._sent_at_s) > _MOST_TIMES:
                self._sent_at_s.popitem(last=False)
            return self._stamp

    def painted(self, stamp: int, *, hidden: bool = False) -> None:
        """Take the browser's word. A stamp that was never sent isn't heard."""
        with self._changed:
            if not 0 <= stamp <= self._stamp:
                return
            self._heard, self._hidden = True, hidden
            if stamp > self._painted:
                self._painted = stamp
                sent_s = self._sent_at_s.get(stamp)
                while self._sent_at_s and next(iter(self._sent_at_s)) <= stamp:
                    self._sent_at_s.popitem(last=False)
                if sent_s is not None:
                    took_s = self._clock() - sent_s
                    self._slow = took_s >= SLOW_S
                    if stamp == self._stamp:
                        self._lag_s = took_s
            self._changed.notify_all()

    @property
    def newest(self) -> int:
        """The newest stamp; 0 before the first."""
        with self._changed:
            return self._stamp

    def has_painted(self) -> bool:
        """Whether any stamp has been painted."""
        with self._changed:
            return self._painted > 0

    def is_painted(self) -> bool:
        """Whether the newest stamp has been painted."""
        with self._changed:
            return self._painted == self._stamp
