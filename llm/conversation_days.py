"""A list of conversations by the day of the last question, as its reader's calendar has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo

from llm.conversation_tree import Conversation

DayKind = Literal["pinned", "today", "yesterday", "this-year", "earlier"]


@dataclass(frozen=True, slots=True)
class Day:
    """A heading of the list with what stands under it.

    Args:
        date: None for what is pinned.
    """

    kind: DayKind
    date: date | None
    conversations: tuple[Conversation, ...]


def by_day(conversations: Iterable[Conversation], now_s: float, zone: tzinfo) -> list[Day]:
    """Group what comes pinned first and newest first; the order stays.

    A time that is yet to come, by the clock of another machine, is today.
    """
    today = day_of(now_s, zone)
    groups: dict[tuple[DayKind, date | None], list[Conversation]] = {}
    for conversation in conversations:
        day = min(day_of(conversation.updated_s, zone), today)
        pinned = conversation.pinned
        kind: DayKind = "pinned" if pinned else _kind(day, today)
        groups.setdefault((kind, None if pinned else day), []).append(conversation)
    return [Day(kind, day, tuple(group)) for (kind, day), group in groups.items()]


def day_of(moment_s: float, zone: tzinfo) -> date:
    """The day of a moment, in seconds since 1970."""
    return datetime.fromtimestamp(moment_s, zone).date()


def zone_of(name: str | None, offset_minutes: int | None) -> tzinfo:
    """A browser's time zone: by its name, else by its offset, else UTC.

    Args:
        offset_minutes: what is to be added to the local time for UTC, as browsers count it.
    """
    try:
        return ZoneInfo(name or "")
    except (KeyError, ValueError, OSError):  # unknown, no name at all, the name of a folder
        pass
    if offset_minutes is not None and abs(offset_minutes) < 24 * 60:
        return timezone(-timedelta(minutes=offset_minutes))
    return UTC


def _kind(day: date, today: date) -> DayKind:
    if day == today:
        return "today"
    if day == today - timedelta(days=1):
        return "yesterday"
    return "this-year" if day.year == today.year else "earlier"
