"""The time of day of the person who reads."""

from __future__ import annotations

from datetime import datetime, tzinfo

import streamlit as st

from llm.conversation_days import zone_of


def time_zone() -> tzinfo:
    """The browser's."""
    return zone_of(st.context.timezone, st.context.timezone_offset)


def moment(seconds: float) -> str:
    """Date and time of day, of seconds since 1970; empty for what no calendar has."""
    try:
        return datetime.fromtimestamp(seconds, time_zone()).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""
