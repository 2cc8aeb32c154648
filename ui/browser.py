"""Which browser this is, as far as that can be told: for fairness, never for access."""

from __future__ import annotations

import hashlib

import streamlit as st

COOKIE = "_streamlit_xsrf"
"""Streamlit gives one to each browser before its page is opened, unless that is switched off."""


def browser() -> str | None:
    """A name for this browser, the same in all its tabs; None where it has no cookie.

    The cookie holds a random token under a mask that changes with every answer of the server. The
    token itself guards uploads, so only its hash goes anywhere.

    Source: version 2 of Tornado's XSRF cookie, `2|mask|masked token|time`, as in Streamlit's
    starlette_app_utils.py.
    """
    try:
        version, mask, masked, _ = st.context.cookies.get(COOKIE, "").strip("\"'").split("|")
        token = _unmasked(bytes.fromhex(mask), bytes.fromhex(masked))
    except ValueError:
        return None
    return hashlib.sha256(token).hexdigest()[:16] if version == "2" and token else None


def _unmasked(mask: bytes, masked: bytes) -> bytes:
    if not mask:
        raise ValueError("no mask")
    return bytes(byte ^ mask[at % len(mask)] for at, byte in enumerate(masked))
