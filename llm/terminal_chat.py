"""The loop of `--chat`: a prompt, an answer, a prompt."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

from llm.catalogue import Catalogue
from llm.terminal_question import at_keyboard

PROMPT = "> "


def questions(words: Catalogue, forget: Callable[[], None]) -> Iterator[str]:
    """What is typed, line by line, until somebody leaves.

    Args:
        forget: begins the conversation anew.
    """
    if at_keyboard():
        with suppress(ImportError):  # there is none on Windows
            import readline  # noqa: F401 - `input` edits its line and remembers others with it
        print(words.say("terminal-chat-begins"), file=sys.stderr, flush=True)
    pressed = False  # Ctrl-C, at the prompt, just before
    while True:
        try:
            line = _line().strip()
        except EOFError:
            if at_keyboard():
                print(file=sys.stderr)
            return
        except KeyboardInterrupt:
            print(file=sys.stderr)
            if pressed:
                return
            pressed = True
            print(words.say("terminal-chat-leave"), file=sys.stderr, flush=True)
            continue
        pressed = False
        if line == "/exit":
            return
        if line == "/clear":
            forget()
            print(words.say("terminal-chat-cleared"), file=sys.stderr, flush=True)
        elif line.startswith("/") and " " not in line and "/" not in line[1:]:
            print(words.say("terminal-chat-begins"), file=sys.stderr, flush=True)
        elif line:
            yield line


def _line() -> str:
    if at_keyboard() and sys.stdout.isatty():
        return input(PROMPT)
    if at_keyboard():  # the answers go into a file
        print(PROMPT, end="", file=sys.stderr, flush=True)
    if sys.stdin is None or not (line := sys.stdin.readline()):
        raise EOFError
    return line
