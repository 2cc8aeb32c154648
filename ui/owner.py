"""Whose conversations these are."""

from __future__ import annotations


def owner() -> str:
    """The one local person."""
    return "local"
