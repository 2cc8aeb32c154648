"""The time zone of the person who reads."""

from __future__ import annotations

from datetime import tzinfo

import streamlit as st

from llm.conversation_days import zone_of


def time_zone() -> tzinfo:
    """The browser's."""
    return zone_of(st.context.timezone, st.context.timezone_offset)
