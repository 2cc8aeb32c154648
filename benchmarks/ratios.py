"""The app against the comparison pages, as shares: "1/140 of". For README, in Markdown.

Shares and not figures, because they travel from machine to machine better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.chat_page import APP
from benchmarks.stream import GRACE_S, StreamFigures, stream_title
from benchmarks.table import align

LEAST_BEHIND_S = 0.01
"""Nearer to the stream's end than this is as good as at its end."""

_FIGURES: tuple[tuple[str, Callable[[StreamFigures], float]], ...] = (
    ("bytes to the browser", lambda f: f.sent_mb),
    ("time in long tasks", lambda f: f.long_tasks_s),
    ("frames over 50 ms", lambda f: f.long_frames),
    (
        "seconds behind at the end",
        # A page that never caught up was at least so far behind when it was given up.
        lambda f: GRACE_S if f.behind_s is None else max(LEAST_BEHIND_S, f.behind_s),
    ),
    ("server CPU", lambda f: f.server_cpu_s),
)


def render_ratios(figures: Sequence[StreamFigures]) -> str:
    """The table; empty where there is nothing to compare."""
    scenarios: dict[str, dict[str, StreamFigures]] = {}
    for one in figures:
        scenarios.setdefault(stream_title([one]), {})[one.page] = one
    others = list(dict.fromkeys(f.page for f in figures if f.page != APP))
    if not others:
        return ""
    lines = [["this app, against", *(f"`{page}`" for page in others)]]
    for title, pages in scenarios.items():
        app = pages.get(APP)
        if app is None:
            return ""
        lines.append([f"**{title}**", *[""] * len(others)])
        for name, value in _FIGURES:
            shares = (
                share(value(app), value(pages[page]), at_least=pages[page].behind_s is None)
                for page in others
            )
            lines.append([name, *shares])
    return align(lines)


def share(ours: float, theirs: float, *, at_least: bool = False) -> str:
    """What part of theirs ours is, in words.

    Args:
        at_least: theirs was still growing when it was taken.
    """
    if theirs == 0:
        return "none, as there" if ours == 0 else "some, there none"
    if ours == 0:
        return "none of"
    if theirs < 1.5 * ours:
        return f"{ours / theirs:.2g} of"
    under = "under " if at_least else ""
    times = theirs / ours
    return f"{under}1/{_two_digits(times)} of"


def _two_digits(number: float) -> str:
    """1.7, 2.5, 14, 140, 1,400."""
    rounded = float(f"{number:.2g}")
    return f"{rounded:g}" if rounded < 10 else f"{rounded:,.0f}"
