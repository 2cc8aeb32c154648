"""The time of day where the browser is."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import streamlit as st


def zone() -> tzinfo:
    """The browser's time zone; UTC where it isn't known here."""
    try:
        return ZoneInfo(st.context.timezone or "")
    except (ValueError, OSError):
        return UTC


def moment(seconds: float) -> str:
    """Date and time of day, of seconds since 1970; empty for what no calendar has."""
    try:
        return datetime.fromtimestamp(seconds, zone()).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""
