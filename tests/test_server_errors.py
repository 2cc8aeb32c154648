"""What a server's refusal says, read without a server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from llm.patient_backend import LONGEST_PAUSE_S
from llm.server_errors import retry_after_s

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("0", 0),
        ("Mon, 30 Nov 2026 12:01:30 GMT", 90),
        ("Mon, 30 Nov 2026 13:01:30 +0100", 90),
    ],
)
def test_retry_after_is_a_number_or_a_date(told: str, seconds: int) -> None:
    assert retry_after_s(told, NOW) == seconds


@pytest.mark.parametrize(
    "told",
    [
        None,
        "",
        "-5",
        "+5",
        "1e9",
        "nan",
        "²",
        "tomorrow-ish",
        "Mon, 30 Nov 2026 11:59:59 GMT",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "Mon, 30 Nov 2026 12:01:30",
        "Mon, 99 Nov 2026 12:01:30 GMT",
        "Mon, 30 Nov 99999999999999999999 12:01:30 GMT",
        "Mon, 30 Nov 2026 12:01:30 +9999999999999",
        "\0" * 50,
    ],
)
def test_a_retry_after_that_says_nothing_counts_as_none(told: str | None) -> None:
    assert retry_after_s(told, NOW) == 0


@pytest.mark.parametrize("told", ["9999999", "9" * 10_000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_retry_after_beyond_all_patience_stays_so(told: str) -> None:
    assert LONGEST_PAUSE_S < retry_after_s(told, NOW) <= 1_000_000
