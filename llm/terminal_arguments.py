"""The command line: what can be asked for, and how that is explained."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from llm.catalogue import LANGUAGES, Catalogue
from llm.terminal_exit import CODES, USAGE

PROGRAM = "python -m llm"


class Parser(argparse.ArgumentParser):
    """Says what is wrong in the person's language, and ends with the code for it."""

    def __init__(self, words: Catalogue, **arguments: Any) -> None:
        super().__init__(prog=PROGRAM, add_help=False, allow_abbrev=False, **arguments)
        self._words = words

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, self._words.say("terminal-usage", reason=message) + "\n")


def wanted_language(argv: Sequence[str]) -> str | None:
    """The language that is asked for, which the rest of the command line is explained in."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--language")
    try:
        language: str | None = first.parse_known_args(argv)[0].language
    except argparse.ArgumentError:
        return None
    return language


def parser(words: Catalogue) -> Parser:
    """The parser, in this language."""

    def help_of(name: str) -> str:
        return words.say(f"terminal-help-{name}").replace("%", "%%")

    codes = "\n".join(f"  {code:>3}  {words.say(f'terminal-exit-{code}')}" for code in CODES)
    made = Parser(
        words,
        usage=f"{PROGRAM} [--chat] [options] [question ...]",
        description=words.say("terminal-about"),
        epilog=f"{words.say('terminal-exit')}\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument_group(words.say("terminal-arguments")).add_argument
    add("question", nargs="*", help=help_of("question"))
    add("--chat", action="store_true", help=help_of("chat"))
    add("--backend", metavar="NAME", help=help_of("backend"))
    add("--model", metavar="NAME", help=help_of("model"))
    add("--system", metavar="TEXT", help=help_of("system"))
    add("--temperature", type=float, metavar="T", help=help_of("temperature"))
    add("--max-tokens", type=int, metavar="N", help=help_of("max-tokens"))
    add("--reasoning", action="store_true", help=help_of("reasoning"))
    add("--plain", action="store_true", help=help_of("plain"))
    add("--language", choices=[*LANGUAGES], help=help_of("language"))
    add("-h", "--help", action="help", help=help_of("help"))
    return made
