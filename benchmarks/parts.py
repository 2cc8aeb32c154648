"""Measuring part by part within a time limit: one that fails, hangs or has no time spoils no other."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks.table import Row, Section
from llm.errors import LLMError
from llm.local_memory import forget_frames

GRACE_S = 40.0
"""What a part that was begun in time may take beyond the limit."""

State = Literal["measured", "failed", "hung", "left out"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a part found out: rows for the table, and all of it for the file."""

    rows: tuple[Row, ...]
    figures: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Something to measure.

    Args:
        name: what it is called on the command line and in the file.
        title: the table's section; parts with one title that follow each other share it.
        needs_s: it isn't begun with less time left, and hangs when it takes twice as long, or
            far beyond the limit.
        required: whether the whole has failed without it.
        measure: does it, on a thread of its own.
    """

    name: str
    title: str
    needs_s: float
    required: bool
    measure: Callable[[], Measured]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a part ended.

    Args:
        reason: why there are no figures.
    """

    part: Part
    state: State
    took_s: float = 0.0
    measured: Measured = field(default_factory=lambda: Measured((), {}))
    reason: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        if self.state == "measured":
            return self.measured.rows
        return (Row(self.part.name, {"app": f"{self.state}: {self.reason}"}),)


def run_parts(
    parts: Sequence[Part],
    limit_s: float,
    told: Callable[[Outcome], None] = lambda outcome: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Measure one after the other, beginning none that may not fit into the limit any more.

    After one that hangs nothing else is measured, as it may hold the device. Its thread is left
    behind and keeps no process alive.

    Args:
        told: hears of each as soon as it is over.
    """
    outcomes: list[Outcome] = []
    ends_s = clock() + limit_s
    hung = ""
    for part in parts:
        left_s = ends_s - clock()
        if hung:
            outcome = Outcome(part, "left out", reason=f"“{hung}” hangs")
        elif left_s < part.needs_s:
            reason = f"it may take {part.needs_s:.0f} s, and {max(0.0, left_s):.0f} s are left"
            outcome = Outcome(part, "left out", reason=reason)
        else:
            outcome = _measured(part, min(2 * part.needs_s, left_s + GRACE_S), clock)
            hung = part.name if outcome.state == "hung" else ""
        outcomes.append(outcome)
        told(outcome)
    return outcomes


def _measured(part: Part, patience_s: float, clock: Callable[[], float]) -> Outcome:
    ended: list[Measured | BaseException] = []

    def measure() -> None:
        try:
            ended.append(part.measure())
        except BaseException as error:  # noqa: BLE001 - a failing part is a line of the table
            traceback.print_exc()
            forget_frames(error)  # they hold models
            ended.append(error)

    started_s = clock()
    thread = threading.Thread(target=measure, name=f"measure-{part.name}", daemon=True)
    thread.start()
    thread.join(patience_s)
    took_s = clock() - started_s
    if not ended:
        return Outcome(part, "hung", took_s, reason=f"no end after {took_s:.0f} s")
    if isinstance(ended[0], Measured):
        return Outcome(part, "measured", took_s, ended[0])
    return Outcome(part, "failed", took_s, reason=reason_of(ended[0]))


def reason_of(error: BaseException) -> str:
    """The error in one line, for which the app's own errors need no catalogue of sentences."""
    if isinstance(error, LLMError):
        values = ", ".join(f"{name}: {value}" for name, value in error.values.items())
        said = f"{type(error).__name__} ({values})"
    else:
        said = f"{type(error).__name__}: {str(error).strip()}"
    return said.splitlines()[0][:200].replace("|", "/")


def failed(outcomes: Sequence[Outcome]) -> bool:
    """Whether something that is required has no figures."""
    return any(one.part.required and one.state != "measured" for one in outcomes)


def sections(outcomes: Sequence[Outcome]) -> list[Section]:
    """The table's sections, in the parts' order."""
    made: list[Section] = []
    for one in outcomes:
        if made and made[-1].title == one.part.title:
            made[-1] = Section(one.part.title, (*made[-1].rows, *one.rows))
        else:
            made.append(Section(one.part.title, one.rows))
    return made
