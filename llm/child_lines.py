"""What a process that works for the app says: JSON lines on stdout, and an error as one of them.

{"error": "NotAModelError", "values": …}  a leaf of `llm.errors` and its values, a reason as
                                          {"reason": id, "values": …}
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from llm import errors
from llm.errors import LLMError, Reason


def say(**line: object) -> None:
    """Tell the app, at once."""
    print(json.dumps(line, default=_reason_as_json), flush=True)


def say_error(error: LLMError) -> None:
    """Tell the app why there is nothing more to come."""
    say(error=type(error).__name__, values=error.values)


def read_line(line: bytes) -> dict[str, Any]:
    """What a line says, in the app; nothing where a library has printed something."""
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def read_error(said: Mapping[str, Any]) -> LLMError | None:
    """The error that a line tells of, in the app."""
    leaf = getattr(errors, str(said.get("error")), None)
    if not (isinstance(leaf, type) and issubclass(leaf, LLMError)):
        return None
    values = {
        name: Reason(value["reason"], value["values"]) if isinstance(value, dict) else value
        for name, value in said["values"].items()
    }
    return leaf(**values)


def environment() -> dict[str, str]:
    """What such a process is started with: it finds the app's own modules."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def end_with_the_app(tidy_up: Callable[[], None] = lambda: None) -> None:
    """End this process when its stdin closes: the app says so, or was killed."""

    def wait() -> None:
        # Not through sys.stdin: its lock, held here, would abort the interpreter's own ending.
        while os.read(sys.stdin.fileno(), 1):
            pass
        try:
            tidy_up()
        finally:
            os._exit(1)

    if not sys.stdin.isatty():
        threading.Thread(target=wait, daemon=True).start()


def _reason_as_json(value: object) -> dict[str, object]:
    if isinstance(value, Reason):
        return {"reason": value.message_id, "values": value.values}
    raise TypeError(type(value).__name__)
