"""Keys and clicks of a person who doesn't wait for the answer's end, and how long each took.

Real ones, through the browser's own input (CDP Input), on the chat's input field: a click into it,
then a key, then the key that takes it back. Every page has that field, and nothing comes of it but
the field itself. How long one took is the browser's own word: Event Timing's `duration`, from the
press until the next frame was painted, of each event that belongs to an interaction.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from playwright.sync_api import Locator

from benchmarks.browser_probe import Probe

EVERY_MS = 300
UNTOLD_MS = 16.0
"""Event Timing leaves out what took less than this; it counts as this much."""

_LISTEN_JS = """() => {
  if (!window.__interactions) {
    window.__interactions = new Map();
    const note = (e) => {
      if (!e.interactionId) return;
      const kind = e.name.startsWith('key') ? 'key' : 'click';
      const known = window.__interactions.get(e.interactionId);
      window.__interactions.set(e.interactionId, {kind, ms: Math.max(e.duration, known?.ms ?? 0)});
    };
    const observer = new PerformanceObserver((list) => list.getEntries().forEach(note));
    observer.observe({type: 'event', durationThreshold: 16});
    // What a busy page has not been handed yet, too.
    window.__interactionsSoFar = () => {
      observer.takeRecords().forEach(note);
      return [...window.__interactions.values()];
    };
  }
  window.__interactions.clear();
}"""
_READ_JS = "() => window.__interactionsSoFar()"


@dataclass(frozen=True, slots=True)
class Felt:
    """How long each key and each click took until its effect was painted, in milliseconds."""

    keys_ms: tuple[float, ...]
    clicks_ms: tuple[float, ...]


class Person:
    """Clicks and types, a press after the other.

    Args:
        probe: the page, with a chat input.
        field: that input, where it isn't the app's.
    """

    def __init__(self, probe: Probe, field: Locator | None = None) -> None:
        self._probe = probe
        self._keys = self._clicks = 0
        field = field or probe.page.get_by_test_id("stChatInputTextArea")
        box = field.bounding_box()
        assert box is not None
        self._x, self._y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self._next = cycle((self._click, self._type, self._take_back))
        probe.page.evaluate(_LISTEN_JS)

    def press(self) -> None:
        """One more press."""
        next(self._next)()

    def press_until_seen(self, name: str, timeout_s: float) -> float | None:
        """Go on until the watched text was on the screen; when it was, or None."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self.press()
            if seen_at := self._probe.wait_seen(name, 0):
                return seen_at
            self._probe.page.wait_for_timeout(EVERY_MS)
        return None

    def felt(self) -> Felt:
        """How it was so far."""
        return self.felt_of(self._probe.page.evaluate(_READ_JS))

    def felt_of(self, told: Sequence[Mapping[str, Any]]) -> Felt:
        """The same, of what the page has handed out itself (`__interactionsSoFar`)."""
        return Felt(
            *(
                filled([each["ms"] for each in told if each["kind"] == kind], pressed)
                for kind, pressed in (("key", self._keys), ("click", self._clicks))
            )
        )

    def _click(self) -> None:
        self._clicks += 1
        self._probe.page.mouse.click(self._x, self._y)

    def _type(self) -> None:
        self._keys += 1
        self._probe.page.keyboard.press("x")

    def _take_back(self) -> None:
        self._keys += 1
        self._probe.page.keyboard.press("Backspace")


def filled(told_ms: Sequence[float], pressed: int) -> tuple[float, ...]:
    """What the browser told of so many presses, with those that were too quick to be told."""
    return (*told_ms, *[UNTOLD_MS] * (pressed - len(told_ms)))


def p75(values: Sequence[float]) -> float | None:
    """What three of four are within; None of nothing."""
    return sorted(values)[math.ceil(0.75 * len(values)) - 1] if values else None
