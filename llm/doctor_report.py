"""What a round of checks found, in the order in which a person wants to read it, and as a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from llm.catalogue import Catalogue
from llm.doctor import Check, DoctorRun, Finding
from llm.doctor_mask import Mask
from llm.errors import Reason

SIGNS = {"bad": "✗", "warn": "!", "ok": "✓", "skipped": "–", "": "…"}
"""A sign for each level; the last is for what still runs."""


@dataclass(frozen=True, slots=True)
class Told:
    """A check and what it found, to be shown as it is.

    Args:
        group: what the check belongs to, as a sentence.
        name: what is looked at.
        level: a `Level`; empty while it runs.
        text: the finding; empty while it runs.
    """

    group: str
    name: str
    level: str = ""
    text: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """A round of checks in one language, without secrets.

    Args:
        overall: the one sentence above all.
        level: the worst there is; empty while checks run and nothing is wrong yet.
        problems: what is to be looked at, the worst first.
        groups: all else, by what it belongs to, in the checks' order.
    """

    overall: str
    level: str
    problems: tuple[Told, ...]
    groups: tuple[tuple[str, tuple[Told, ...]], ...]


def report_of(
    run: DoctorRun, words: Catalogue, mask: Mask, own: Sequence[tuple[Check, Finding]] = ()
) -> Report:
    """What a round has found so far.

    Args:
        own: what is found for one reader alone, besides the round that all share.
    """
    found = [*zip(run.checks, run.findings, strict=True), *own]
    told = [_told(check, finding, words, mask) for check, finding in found]
    problems = [each for level in ("bad", "warn") for each in told if each.level == level]
    groups = [
        (group, _joined([each for each in told if each.group == group and each not in problems]))
        for group in dict.fromkeys(each.group for each in told)
    ]
    left = sum(finding is None for _, finding in found)
    overall = _overall(len(problems), left, len(found)).sentence(words)
    level = problems[0].level if problems else ("" if left else "ok")
    shown = tuple((group, rest) for group, rest in groups if rest)
    return Report(overall, level, tuple(problems), shown)


def to_markdown(report: Report, title: str, at: datetime) -> str:
    """The report as a text to take along."""
    lines = [f"# {title}", "", f"{at:%Y-%m-%d %H:%M} · {report.overall}"]
    if report.problems:
        lines += ["", *(_line(each, f"{each.group} · {each.name}") for each in report.problems)]
    for group, rest in report.groups:
        lines += ["", f"## {group}", "", *(_line(each, each.name) for each in rest)]
    return "\n".join([*lines, ""])


def _told(check: Check, finding: Finding | None, words: Catalogue, mask: Mask) -> Told:
    group, name = mask.reason(check.group).sentence(words), words.say(check.name)
    if finding is None:
        return Told(group, name)
    text = mask.reason(finding.reason).sentence(words)
    return Told(group, name, finding.level, text, finding.seconds)


def _joined(told: list[Told]) -> tuple[Told, ...]:
    """One row for all of a group that have nothing to say for the same reason."""
    rows: dict[str, Told] = {}
    for each in told:
        key = each.text if each.level == "skipped" else f"\0{each.name}"
        before = rows.get(key)
        rows[key] = replace(before, name=f"{before.name} · {each.name}") if before else each
    return tuple(rows.values())


def _overall(problems: int, left: int, total: int) -> Reason:
    if left:
        return Reason("doctor-checking", {"done": total - left, "total": total})
    if problems:
        return Reason("doctor-problems", {"count": problems})
    return Reason("doctor-all-well")


def _line(told: Told, name: str) -> str:
    sign = SIGNS[told.level]
    took = f" ({told.seconds:.1f} s)" if told.level else ""
    return f"- {sign} {name}: {told.text}{took}"
