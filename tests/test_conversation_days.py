"""The list by days: midnight, time zones, years, other machines' clocks."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from llm.catalogue import catalogue
from llm.conversation_days import Day, by_day, zone_of
from llm.conversation_tree import Conversation, ConversationKey

NEW_YORK, SHANGHAI = ZoneInfo("America/New_York"), ZoneInfo("Asia/Shanghai")


def at(year: int, month: int, day: int, hour: int = 12, minute: int = 0) -> float:
    return datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()


def head(name: str, updated_s: float, *, pinned: bool = False) -> Conversation:
    return Conversation(
        ConversationKey("local", name), title=name, updated_s=updated_s, pinned=pinned
    )


def told(days: list[Day]) -> list[tuple[str, date | None, str]]:
    return [
        (day.kind, day.date, " ".join(head.title for head in day.conversations)) for day in days
    ]


def test_pinned_ones_come_first_then_the_days() -> None:
    listed = [
        head("pin", at(2020, 1, 1), pinned=True),
        head("a", at(2026, 3, 2, 11)),
        head("b", at(2026, 3, 2, 0)),
        head("c", at(2026, 3, 1)),
        head("d", at(2026, 2, 27)),
        head("e", at(2025, 12, 31)),
    ]
    assert told(by_day(listed, at(2026, 3, 2), UTC)) == [
        ("pinned", None, "pin"),
        ("today", date(2026, 3, 2), "a b"),
        ("yesterday", date(2026, 3, 1), "c"),
        ("this-year", date(2026, 2, 27), "d"),
        ("earlier", date(2025, 12, 31), "e"),
    ]


def test_the_reader_s_midnight_counts_not_the_server_s() -> None:
    listed = [head("late", at(2026, 6, 10, 20)), head("early", at(2026, 6, 10, 2))]
    now_s = at(2026, 6, 10, 21)
    assert told(by_day(listed, now_s, UTC)) == [("today", date(2026, 6, 10), "late early")]
    assert told(by_day(listed, now_s, SHANGHAI)) == [
        ("today", date(2026, 6, 11), "late"),
        ("yesterday", date(2026, 6, 10), "early"),
    ]
    assert told(by_day(listed, now_s, NEW_YORK)) == [
        ("today", date(2026, 6, 10), "late"),
        ("yesterday", date(2026, 6, 9), "early"),
    ]


def test_a_second_before_midnight_is_yesterday_a_second_after() -> None:
    asked = head("x", datetime(2026, 1, 1, 23, 59, 59, tzinfo=SHANGHAI).timestamp())
    before = datetime(2026, 1, 1, 23, 59, 59, 500_000, tzinfo=SHANGHAI).timestamp()
    assert by_day([asked], before, SHANGHAI)[0].kind == "today"
    assert by_day([asked], before + 1, SHANGHAI)[0].kind == "yesterday"


def test_yesterday_is_a_calendar_day_where_a_day_has_23_hours() -> None:
    asked = head("x", datetime(2026, 3, 7, 0, 30, tzinfo=NEW_YORK).timestamp())
    now_s = datetime(2026, 3, 8, 23, 45, tzinfo=NEW_YORK).timestamp()  # the clocks went forward
    assert by_day([asked], now_s, NEW_YORK)[0].kind == "yesterday"


def test_another_machine_s_fast_clock_is_today() -> None:
    listed = [head("fast", at(2026, 5, 2, 9)), head("a", at(2026, 5, 1))]
    assert told(by_day(listed, at(2026, 5, 1, 23), UTC)) == [
        ("today", date(2026, 5, 1), "fast a"),
    ]


def test_a_zone_comes_from_its_name_else_from_its_offset() -> None:
    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert zone_of("Asia/Shanghai", 0) == SHANGHAI
    for name in (None, "", "Nowhere/At_All", "../etc/passwd", "America"):
        assert noon.astimezone(zone_of(name, -480)).hour == 20
        assert zone_of(name, None) is UTC
        assert zone_of(name, 100_000) is UTC


def test_dates_are_written_as_each_language_writes_them() -> None:
    day = date(2026, 11, 5)
    assert catalogue("en").day(day, year=False) == "November 5"
    assert catalogue("en").day(day, year=True) == "November 5, 2026"
    assert catalogue("zh").day(day, year=False) == "11月5日"
    assert catalogue("zh").day(day, year=True) == "2026年11月5日"
