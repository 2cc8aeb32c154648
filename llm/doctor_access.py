"""Who may reach the page and the API, and how long the line in front of a model is."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

from llm.doctor import Finding
from llm.errors import Reason
from llm.registry import JobRegistry
from llm.types import Backend, CancelToken


@dataclass(frozen=True)
class AccessCheck:
    """Whether strangers may use the page.

    Args:
        address: what the app is bound to; empty is every address of this machine.
        forwarded: whether whoever asks came through a proxy.
        signs_in: whether nobody gets in without signing in.
    """

    group: Reason
    address: str
    forwarded: bool
    signs_in: bool

    name = "doctor-check-access"
    limit_s = 5.0

    def run(self, cancel: CancelToken) -> Finding:
        if self.signs_in:
            return Finding("ok", Reason("doctor-access-signs-in"))
        if not is_loopback(self.address):
            return Finding("warn", Reason("doctor-access-open"))
        if self.forwarded:
            return Finding("warn", Reason("doctor-access-proxy"))
        return Finding("ok", Reason("doctor-access-here"))


@dataclass(frozen=True)
class ApiCheck:
    """Who may use the API, whom the page's signing in doesn't keep out.

    Args:
        key: whether there is a key, which is then asked for from everybody.
        on_loopback: whether programs of this machine need none, where there is no key.
    """

    group: Reason
    key: bool
    on_loopback: bool

    name = "doctor-check-api"
    limit_s = 5.0

    def run(self, cancel: CancelToken) -> Finding:
        if self.key:
            return Finding("ok", Reason("doctor-api-key"))
        return Finding("ok", Reason("doctor-api-here" if self.on_loopback else "doctor-api-off"))


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches who is bound to that address."""
    if address == "localhost" or address.startswith("unix:"):
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class LineCheck:
    """How many stand in line for a backend.

    Args:
        why_not: why it can't answer now; None where it can. May take as long as asking a server.
    """

    group: Reason
    registry: JobRegistry
    backend: Backend
    why_not: Callable[[], Reason | None]

    name = "doctor-check-line"
    limit_s = 20.0

    def run(self, cancel: CancelToken) -> Finding:
        waiting, slots = self.registry.waiting(self.backend), self.backend.slots
        told = {"waiting": waiting, "slots": slots}
        if waiting > slots:  # who comes now waits for two answers at least
            return Finding("warn", Reason("doctor-line-long", told))
        # An empty line in front of what doesn't answer is nothing to be glad of.
        if (why := self.why_not()) is not None:
            return Finding("skipped", why)
        return Finding("ok", Reason("doctor-line-ok", told))
