"""Whether Streamlit runs as this app wants it: its own config.toml, in force."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from llm.doctor import Check, Finding, Level
from llm.errors import Reason
from llm.types import CancelToken

GROUP = Reason("doctor-group-streamlit")
CONFIG = Path(__file__).parents[1] / ".streamlit" / "config.toml"

_USUAL: dict[str, object] = {
    "server.enableCORS": True,
    "server.enableXsrfProtection": True,
    "server.websocketPingInterval": None,
}
"""Of options that the app's own file leaves as they are. Source: Streamlit 1.67, config.py."""

_OPTIONS: dict[str, tuple[str, Level]] = {
    "runner.postScriptGC": ("collect", "warn"),
    "server.maxMessageSize": ("message", "warn"),
    "server.websocketPingInterval": ("ping", "warn"),
    "server.fileWatcherType": ("watch", "warn"),
    "server.enableCORS": ("cors", "bad"),
    "server.enableXsrfProtection": ("xsrf", "bad"),
}
LONGEST_PING_S = 30
"""Proxies close a quiet web socket after 60 seconds, some after 30."""


@dataclass(frozen=True)
class OptionCheck:
    """Whether one option is as the app wants it.

    Args:
        option: Streamlit's name for it.
        wanted: the app's own value.
        found: the one in force.
    """

    option: str
    wanted: object
    found: object

    group = GROUP
    limit_s = 5.0

    @property
    def name(self) -> str:
        return f"doctor-check-{_OPTIONS[self.option][0]}"

    def run(self, cancel: CancelToken) -> Finding:
        kind, level = _OPTIONS[self.option]
        told = {"option": self.option, "value": _said(self.found), "wanted": _said(self.wanted)}
        if self._is_well():
            if self.found is None:
                return Finding("ok", Reason("doctor-option-unset", told))
            return Finding("ok", Reason("doctor-option-ok", told))
        return Finding(level, Reason(f"doctor-option-{kind}", told))

    def _is_well(self) -> bool:
        if self.option == "server.websocketPingInterval":
            return not isinstance(self.found, int | float) or 0 < self.found <= LONGEST_PING_S
        if self.option == "server.maxMessageSize":
            smaller = isinstance(self.found, int) and isinstance(self.wanted, int)
            return not smaller or int(str(self.found)) >= int(str(self.wanted))
        return self.found == self.wanted


def option_checks() -> list[Check]:
    """One for each option that matters."""
    wanted = own_options()
    return [OptionCheck(each, wanted.get(each), st.get_option(each)) for each in _OPTIONS]


def own_options() -> dict[str, object]:
    """What the app's own config.toml says; what Streamlit does by itself where it can't be read."""
    try:
        told = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return dict(_USUAL)
    named = {f"{section}.{n}": v for section, table in told.items() for n, v in table.items()}
    return {**_USUAL, **named}


def _said(value: object) -> str:
    if value is None:
        return "–"
    return str(value).lower() if isinstance(value, bool) else str(value)
