"""Who is here: the owner of what is asked and shown.

Streamlit keeps who signed in in a signed cookie for 30 days and reads it once, when a session
begins: `st.user` of a session that is open stays as it is, whatever happens to the cookie. So each
run looks whether that sign-in still counts.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import streamlit as st

from llm.errors import NotSignedInError
from llm.sign_in_setup import read_providers, reading_secrets_failed

P = ParamSpec("P")
T = TypeVar("T")

LOCAL = "local"
"""The one owner where no sign-in is set up."""
SIGN_IN_LIFE_S = 30 * 24 * 3600
"""As long as Streamlit's cookie. Source: AUTH_COOKIE_MAX_AGE_SECONDS in its server."""


@st.cache_resource(show_spinner=False)
def providers() -> Mapping[str, str]:
    """The sign-in providers by name, with their metadata's addresses; none, and nobody signs in.

    Read once, as the settings are: a file that is being rewritten opens the app to nobody.

    Raises:
        SettingsError: `[auth]` is there and can't be used, or whether it is there can't be told.
    """
    try:
        auth = st.secrets.get("auth")
    except (OSError, UnicodeDecodeError) as error:  # Streamlit's own is an OSError
        for path in st.get_option("secrets.files"):
            if Path(path).exists():
                raise reading_secrets_failed(path, error) from None
        return {}
    if auth is None:
        return {}
    return read_providers(auth if isinstance(auth, Mapping) else {})


def owner() -> str:
    """A stable id of who is here: `LOCAL`, or 64 hexadecimal digits of who is signed in.

    Raises:
        NotSignedInError: a sign-in is needed, and there is none, or it counts no more.
        SettingsError: see `providers`.
    """
    if not providers():
        return LOCAL
    if not _is_signed_in():
        raise NotSignedInError
    return owner_id(str(st.user["iss"]), str(st.user["sub"]))


def owner_id(issuer: str, subject: str) -> str:
    """The id of that issuer's subject.

    These two claims together, and nothing else, name a person for good; an e-mail address changes
    hands and may be unverified. A JSON list keeps them apart whatever they contain, which a
    separator would not. Its SHA-256 is as long for everybody, fits file names and columns, and puts
    nobody's name into logs.

    Source: https://openid.net/specs/openid-connect-core-1_0.html#ClaimStability
    """
    return hashlib.sha256(json.dumps([issuer, subject]).encode()).hexdigest()


def needs_sign_in() -> bool:
    """Whether nothing may be shown here before somebody has signed in.

    Raises:
        SettingsError: see `providers`.
    """
    return bool(providers()) and not _is_signed_in()


def while_signed_in(make: Callable[P, T]) -> Callable[P, T]:
    """The same for whoever is here, until this sign-in is over; on any thread.

    Raises:
        NotSignedInError: it is over; when called.
    """
    user = st.user.to_dict() if providers() else None

    @wraps(make)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        if user is not None and not _counts(user):
            raise NotSignedInError
        return make(*args, **kwargs)

    return guarded


def is_signed_in() -> bool:
    """Whether somebody is here who has signed in, and so can sign out."""
    return bool(providers()) and _is_signed_in()


def name() -> str:
    """What to call who is signed in. To be shown only: anybody may have the same."""
    for claim in ("name", "preferred_username", "email", "sub"):
        if isinstance(called := st.user.get(claim), str) and called.strip():
            return called
    return ""


def sign_out() -> None:
    """End this sign-in, in all tabs that have it, and have the browser forget it."""
    now_s = time.time()
    ended = _ended()
    for sign_in, ended_s in list(ended.items()):
        if now_s - ended_s > SIGN_IN_LIFE_S:
            ended.pop(sign_in, None)
    ended[_sign_in(st.user.to_dict())] = now_s
    st.logout()


def _is_signed_in() -> bool:
    return _counts(st.user.to_dict())


def _counts(user: Mapping[str, Any]) -> bool:
    named = [user.get(claim) for claim in ("iss", "sub")]
    issued_s = user.get("iat")
    return (
        user.get("is_logged_in") is True
        and all(isinstance(claim, str) and claim for claim in named)
        and isinstance(issued_s, int | float)
        and time.time() - issued_s < SIGN_IN_LIFE_S
        and _sign_in(user) not in _ended()
    )


def _sign_in(user: Mapping[str, Any]) -> str:
    """The id of this one sign-in: its token says when it was given, and has a nonce."""
    told = json.dumps(user, sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()


@st.cache_resource(show_spinner=False)
def _ended() -> dict[str, float]:
    """The sign-ins that were ended by signing out, with when that was.

    Thread-safety: single operations on a dict.
    """
    return {}
