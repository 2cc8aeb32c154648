"""Who may use the API: whoever has the key, or programs of this machine where that is switched on.

Without a key two things are kept out that reach a loopback port all the same: what a proxy passes
on, and web pages in this machine's browser, also those that have their own name point to it (DNS
rebinding). A browser tells the page's origin with every request that could do anything, and the
name that was asked for.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.requests import Request

from api.errors import ApiError, refused

_FORWARDED = re.compile(
    r"forwarded|x-forwarded-.+|(x-real|x-client|true-client|.+-connecting)-ip|via"
)
"""What proxies add; one that adds nothing can't be told from a program of this machine."""
_ALLOWED_HEADERS = "Authorization, Content-Type, Last-Event-ID"
LOOPBACK = "api:loopback"


@dataclass(frozen=True, slots=True)
class Access:
    """The rules.

    Args:
        key: what everybody has to send as the bearer token; None where there is none.
        on_loopback: whether programs of this machine may come without, where there is no key.
        origins: web pages of other origins that may ask from a browser.
    """

    key: str | None = field(default=None, repr=False)
    on_loopback: bool = False
    origins: tuple[str, ...] = ()

    @property
    def on(self) -> bool:
        return self.key is not None or self.on_loopback

    def caller(self, request: Request) -> str:
        """Who asks: for the fairness of the line, and for whose kept answers may be given.

        Raises:
            ApiError: nobody who may.
        """
        if self.key is None:
            self.require_loopback(request)
            return LOOPBACK
        given = request.headers.get("Authorization", "").encode("latin-1")  # the bytes as they came
        scheme, _, token = given.partition(b" ")
        if scheme.lower() != b"bearer" or not token.strip():
            raise _unknown("key_missing")
        if not hmac.compare_digest(token.strip(), self.key.encode()):
            raise _unknown("invalid_api_key")
        return "api:" + hashlib.sha256(self.key.encode()).hexdigest()[:16]

    def require_loopback(self, request: Request) -> None:
        """Nothing where a key is set: then this isn't what keeps others out.

        Raises:
            ApiError: it doesn't come from a program of this machine.
        """
        if self.key is not None:
            return
        headers = request.headers
        client = request.client.host if request.client else ""
        if not _is_loopback(client) or any(map(_FORWARDED.fullmatch, headers)):
            raise refused(403, "loopback_only")
        host = headers.get("Host", "")
        named = _HOST.fullmatch(host)
        if named is None or not _is_loopback(named["ip6"] or named["name"].lower()):
            raise refused(403, "host_not_allowed")
        origin = headers.get("Origin")
        if origin is None:
            foreign = headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        else:
            foreign = origin not in (f"http://{host}", f"https://{host}", *self.origins)
        if foreign:
            raise refused(403, "origin_not_allowed")

    def cors(self, request: Request) -> Mapping[str, str]:
        """What lets a page of an allowed origin read the answer."""
        origin = request.headers.get("Origin")
        if origin is None or origin not in self.origins:
            return {"Vary": "Origin"} if self.origins else {}
        told = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        if request.method == "OPTIONS":
            told["Access-Control-Allow-Methods"] = "GET, POST, DELETE"
            told["Access-Control-Allow-Headers"] = _ALLOWED_HEADERS
            told["Access-Control-Max-Age"] = "600"
        return told


_HOST = re.compile(r"(?:(?P<name>[A-Za-z0-9.-]+)|\[(?P<ip6>[0-9A-Fa-f:.]+)\])(?::\d+)?")


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _unknown(code: str) -> ApiError:
    error = refused(401, code)
    error.headers["WWW-Authenticate"] = "Bearer"
    return error
