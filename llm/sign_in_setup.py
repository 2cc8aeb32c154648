"""Whether signing in is set up rightly: the `[auth]` section of Streamlit's secrets.toml.

Streamlit itself notices what is missing only when somebody presses the button, and says it with a
traceback. A cookie secret that can be guessed lets anybody sign in as anybody, and it says nothing
at all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from llm.errors import Reason, SettingsError, SignInProviderError
from llm.loop_thread import Handover, LoopThread

if TYPE_CHECKING:
    import httpx2

DEFAULT = "default"
"""Streamlit's name for the provider that `[auth]` itself describes."""
MIN_SECRET_CHARS = 32
CALLBACK = "/oauth2callback"
PROVIDER_WAIT_S = 5.0
MAX_METADATA_BYTES = 1_000_000
"""Providers send a few thousand."""

_GRACE_S = 1.0
"""To notice that the time is over, and to close the connection."""

_NEEDED = ("client_id", "client_secret", "server_metadata_url")
_SHARED_TABLES = ("client_kwargs",)


def read_providers(auth: Mapping[str, object]) -> dict[str, str]:
    """The providers of an `[auth]` section, by name, each with the address of its metadata.

    Raises:
        SettingsError: something is missing, or so that it can't be safe or can't work.
    """
    _check_package()
    _text(auth, "redirect_uri")
    _text(auth, "cookie_secret")
    where = urlsplit(str(auth["redirect_uri"]))
    if where.scheme not in ("http", "https") or not where.netloc or where.query:
        raise _wrong("redirect_uri", Reason("reason-callback"))
    if not where.path.endswith(CALLBACK):
        raise _wrong("redirect_uri", Reason("reason-callback"))
    if len(str(auth["cookie_secret"])) < MIN_SECRET_CHARS:
        raise _wrong("cookie_secret", Reason("reason-secret-short", {"limit": MIN_SECRET_CHARS}))
    named = {
        name: table
        for name, table in auth.items()
        if isinstance(table, Mapping) and name not in _SHARED_TABLES
    }
    if DEFAULT not in named and (not named or any(name in auth for name in _NEEDED)):
        named = {DEFAULT: auth, **named}
    return {name: _metadata_url(name, table) for name, table in named.items()}


def reading_secrets_failed(path: str, error: Exception) -> SettingsError:
    """A secrets.toml that is there and can't be read: whether it has an `[auth]` nobody knows."""
    if isinstance(error, PermissionError | UnicodeDecodeError):
        from llm.reasons import reading_failed

        return SettingsError(setting=path, reason=reading_failed(error))
    return SettingsError(setting=path, reason=Reason("reason-not-toml"))


def check_provider(metadata_url: str, limit_s: float = PROVIDER_WAIT_S) -> None:
    """Ask the provider for its metadata, as signing in will do.

    Args:
        limit_s: for all of it, from the look-up of its name to the answer's last byte.

    Raises:
        SignInProviderError: it doesn't answer within that time, or with something else.
    """
    import httpx2

    # Signing in uses this very library, so both trust and reach the same. Its own limits are on
    # each read: a provider that trickles would never meet one.
    client = httpx2.AsyncClient(timeout=None)
    answer: Handover[None, bytes] = Handover(1)
    thread = LoopThread("sign-in-check", client.aclose)
    try:
        thread.submit(_fetched(client, metadata_url, limit_s), answer.end)
        if not answer.wait_for_end(limit_s + _GRACE_S):
            raise TimeoutError
        metadata = json.loads(answer.result())
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, TimeoutError) as error:
        raise SignInProviderError(url=metadata_url, kind=type(error).__name__) from None
    except RecursionError:
        raise SignInProviderError(url=metadata_url, kind="ValueError") from None
    finally:
        thread.close(timeout_s=_GRACE_S)
    if not isinstance(metadata, dict) or "authorization_endpoint" not in metadata:
        raise SignInProviderError(url=metadata_url, kind="no authorization_endpoint")


async def _fetched(client: httpx2.AsyncClient, url: str, limit_s: float) -> bytes:
    body = bytearray()
    async with asyncio.timeout(limit_s), client.stream("GET", url) as answer:
        answer.raise_for_status()
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > MAX_METADATA_BYTES:
                raise ValueError("too long for a provider's metadata")
    return bytes(body)


def _check_package() -> None:
    if find_spec("authlib") is None:
        raise SettingsError(
            setting="[auth]", reason=Reason("reason-sign-in-package", {"package": "Authlib"})
        )


def _metadata_url(name: str, table: Mapping[str, object]) -> str:
    # Streamlit finds the provider again by cutting a key at its underscores.
    if "_" in name:
        raise SettingsError(setting=f"[auth.{name}]", reason=Reason("reason-provider-name"))
    for key in _NEEDED:
        _text(table, key, "" if name == DEFAULT else name)
    url = str(table["server_metadata_url"])
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise _wrong(
            "server_metadata_url", Reason("reason-metadata-url"), "" if name == DEFAULT else name
        )
    return url


def _text(table: Mapping[str, object], key: str, provider: str = "") -> None:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _wrong(key, Reason("reason-sign-in-missing"), provider)


def _wrong(key: str, reason: Reason, provider: str = "") -> SettingsError:
    section = f"[auth.{provider}]" if provider else "[auth]"
    return SettingsError(setting=f"{section} {key}", reason=reason)
