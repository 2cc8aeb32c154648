"""Takes out of what is shown whatever is nobody's business: keys, passwords, where stores are, home
folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable
from urllib.parse import parse_qsl, unquote

from llm.errors import Reason, Value
from llm.settings import Settings

MASK = "…"
_MIN_CHARS = 3
"""A shorter secret stands in every other word; it is taken out only where it stands as one."""

_STORE = re.compile(r"\b(?!https?:)([a-z][a-z0-9.-]*(?:\+\w+)?://)[^\s“”'\"<>]+")
"""Any other address than one on the web is a store's: nothing of it is shown."""

_USER = re.compile(r"(?<=://)[^\s/]*@")
_TOKEN = re.compile(r"\b(?:sk-|hf_|ghp_|Bearer\s+|Basic\s+)[\w.~+/=-]{6,}")
_HOMES = re.compile(r"(?:/home|/Users)/[^\s/\\:,;)\"'”]+|[A-Za-z]:\\Users\\[^\s/\\:,;)\"'”]+")
_ADDRESSES = ("REDIS_URL",)
_KEYS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY")


@runtime_checkable
class _Secret(Protocol):
    """pydantic's `SecretStr`, which is known in one place."""

    def get_secret_value(self) -> str: ...


class Mask:
    """Masks what is put into sentences, never their own words: where those change, it tells.

    Thread-safety: read-only after construction.

    Args:
        secrets: texts that may stand nowhere.
        home: a folder that is shown as `~`.
    """

    def __init__(self, secrets: Iterable[str], home: str = "") -> None:
        # The longest first: one may be a part of another.
        told = sorted({each for each in secrets if each.strip()}, key=len, reverse=True)
        parts = [
            re.escape(each) if len(each) >= _MIN_CHARS else rf"(?<!\w){re.escape(each)}(?!\w)"
            for each in told
        ]
        self._secrets = re.compile("|".join(parts)) if parts else None
        self._home = home if home not in ("", "/") else ""

    @classmethod
    def of(cls, settings: Settings, environment: Mapping[str, str] = os.environ) -> Mask:
        """That of an installation: every key and password of its settings, wherever they stand."""
        secrets = [secret for value in dict(settings).values() for secret in _secrets_in(value)]
        for name in _ADDRESSES:
            secrets += _of_address(environment.get(name, ""))
        secrets += [environment.get(name, "") for name in _KEYS]
        return cls(secrets, str(Path.home()))

    def text(self, text: str) -> str:
        """A text without secrets."""
        if self._secrets is not None:
            text = self._secrets.sub(MASK, text)
        text = _TOKEN.sub(MASK, _USER.sub(f"{MASK}@", _STORE.sub(rf"\1{MASK}", text)))
        if self._home:
            text = re.sub(rf"{re.escape(self._home)}(?![\w.-])", "~", text)
        return _HOMES.sub("~", text)

    def reason(self, reason: Reason) -> Reason:
        """A sentence whose values hold no secret."""
        return Reason(reason.message_id, {n: self._value(v) for n, v in reason.values.items()})

    def _value(self, value: Value | Reason) -> Value | Reason:
        if isinstance(value, Reason):
            return self.reason(value)
        return self.text(value) if isinstance(value, str) else value


def _secrets_in(value: object) -> Iterator[str]:
    """The secrets of a setting's value: of texts that hide themselves, and of addresses."""
    if isinstance(value, _Secret):
        secret = value.get_secret_value()
        yield from _of_address(secret)
        yield secret
        yield secret.strip()  # as it is sent
    elif isinstance(value, str):
        yield from _of_address(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _secrets_in(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _secrets_in(each)
    elif hasattr(value, "model_dump"):
        yield from _secrets_in(dict(value))  # type: ignore[call-overload]


def _of_address(address: str) -> list[str]:
    """The password of an address, and what its query says, as they are written and as meant."""
    found: list[str] = []
    if told := re.match(r"[\w+.-]+://(?P<user>[^/]*|.*)@", address):
        user, colon, password = told["user"].partition(":")
        found.append(password if colon else user)
    query = address.partition("?")[2].partition("#")[0]
    found += [value for _, value in parse_qsl(query) if "://" in address]
    return [way for each in found for way in (each, unquote(each)) if each]
