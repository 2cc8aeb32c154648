"""The goals, and the one table that holds the figures against them."""

from __future__ import annotations

import statistics
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A figure: what was measured, what the app got, what the others got, what was the goal.

    Args:
        figure: what it is.
        values: as texts, by page; "app" is held against the goal.
        goal: the goal as a text, empty where there is none.
        met: whether the app's value meets it; None where there is no goal or no value.
    """

    figure: str
    values: dict[str, str]
    goal: str = ""
    met: bool | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one scenario."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """A bar for a number: at most (or at least) so much."""

    bar: float
    unit: str = ""
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bar:g}{self.unit}"

    def met(self, value: float | None) -> bool | None:
        if value is None:
            return None
        return value >= self.bar if self.at_least else value <= self.bar


def row(
    figure: str,
    values: dict[str, float | None],
    show: Callable[[float], str],
    goal: Goal | None = None,
) -> Row:
    """A row of numbers; an unknown one is shown as a dash and meets no goal."""
    texts = {page: "–" if value is None else show(value) for page, value in values.items()}
    return Row(
        figure,
        texts,
        str(goal) if goal else "",
        bool(goal.met(values["app"])) if goal and "app" in values else None,
    )


def spread(figure: str, values: Sequence[float], form: str, goal: Goal | None = None) -> Row:
    """The app's median, and in brackets its lowest and highest; the goal is the median's."""
    low, high = (form.format(edge) for edge in (min(values), max(values)))
    return row(
        figure,
        {"app": statistics.median(values)},
        lambda median: f"{form.format(median)} ({low} to {high})",
        goal,
    )


def yes_no(figure: str, values: dict[str, bool], *, wanted: bool = True) -> Row:
    """A row of yes and no; yes is the goal where `wanted`."""
    texts = {page: "yes" if value else "no" for page, value in values.items()}
    return Row(
        figure,
        texts,
        "yes" if wanted else "",
        values["app"] if wanted and "app" in values else None,
    )


def render(sections: Sequence[Section]) -> str:
    """The table, in Markdown with aligned columns."""
    pages = list(dict.fromkeys(p for s in sections for r in s.rows for p in r.values))
    lines = [["figure", *pages, "goal", ""]]
    for section in sections:
        lines.append([f"**{section.title}**", *[""] * (len(pages) + 2)])
        for r in section.rows:
            verdict = {True: "met", False: "MISSED", None: ""}[r.met]
            lines.append([r.figure, *(r.values.get(p, "") for p in pages), r.goal, verdict])
    return align(lines)


def align(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns; the first line is its head."""
    widths = [max(_width(line[at]) for line in lines) for at in range(len(lines[0]))]
    lines = [lines[0], ["-" * width for width in widths], *lines[1:]]
    return "\n".join(
        "| "
        + " | ".join(cell + " " * (w - _width(cell)) for cell, w in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )


def _width(text: str) -> int:
    """Columns that the text takes in a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
