"""Reads a model's files whatever lies in their place: a pipe, a device, too much, or nonsense."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

MOST_JSON_BYTES = 16 << 20
"""More than any model's `config.json` or index has; one of 400 shards is below 10 MB."""


class NotReadableError(ValueError):
    """It is there, and isn't what a model has there."""


def open_file(path: Path) -> BinaryIO:
    """Open a regular file. Anything else is refused without waiting: a pipe may never be written.

    Raises:
        NotReadableError: it is no regular file.
        OSError: it can't be opened.
        ValueError: the path is no path.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # not even opened: some devices notice that
        raise NotReadableError("no regular file")
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):  # it was put in between
            raise NotReadableError("no regular file")
        return os.fdopen(opened, "rb", buffering=1 << 20)
    except BaseException:
        os.close(opened)
        raise


def read_text(path: Path, most_bytes: int = MOST_JSON_BYTES) -> str:
    """A text file of the model's.

    Raises:
        FileNotFoundError: there is none.
        NotReadableError: it can't be read, whatever the reason.
    """
    try:
        with open_file(path) as file:
            read = file.read(most_bytes + 1)
        if len(read) > most_bytes:
            raise NotReadableError("too large")
        return read.decode("utf-8")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise NotReadableError(type(error).__name__) from error


def read_json(path: Path, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """A JSON file of the model's. Raises: as `read_text`."""
    return parse_json(read_text(path, most_bytes))


def parse_json(text: str | bytes) -> Any:
    """Parse what a model's file holds.

    Raises:
        NotReadableError: it is no JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotReadableError(type(error).__name__) from error
