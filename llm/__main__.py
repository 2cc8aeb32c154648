"""The terminal face: `python -m llm "question"`.

Only the answer goes to standard output; what goes on, what it took and what went wrong goes to
standard error. The exit code says how it ended (`llm/terminal_exit.py`).
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper
from typing import NoReturn, TextIO

from llm.catalogue import Catalogue, catalogue
from llm.errors import InternalError, LLMError, Reason
from llm.fault_log import log_fault
from llm.job import Snapshot
from llm.named_backends import NamedBackends, server_id
from llm.registry import JobRegistry
from llm.settings import Settings, load_settings
from llm.terminal_arguments import Parser, parser, wanted_language
from llm.terminal_asking import AnswerView, Conversation
from llm.terminal_chat import questions
from llm.terminal_exit import ANSWERED, FAILED, NO_READER, STOPPED, code_of_answer, code_of_error
from llm.terminal_plain import PlainAnswer
from llm.terminal_question import at_keyboard, from_input, question_of
from llm.terminal_receipt import receipt
from llm.terminal_status import StatusLine, can_move
from llm.terminal_words import language, told
from llm.usual_params import usual_params

logger = logging.getLogger(__name__)


def main(argv: list[str]) -> int:
    """Answer what the command line asks; returns the exit code."""
    _speak_utf8()
    for name in ("SIGTERM", "SIGHUP"):  # ends like anything else: the model is told
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # else nohup's
            signal.signal(number, _leave)
    wanted = wanted_language(argv)
    words = catalogue(language(wanted))
    try:
        commands = parser(words)
        asked = commands.parse_intermixed_args(argv)
        settings = _as_asked(load_settings(), asked)
        words = catalogue(language(wanted, settings.language))
        return _answer(settings, asked, commands, words)
    except BrokenPipeError:
        _let_output_go()
        return NO_READER
    except KeyboardInterrupt:
        return STOPPED
    except LLMError as error:
        return _say_error(error, words)
    except OSError as error:
        _let_output_go()
        reason = Reason("terminal-output", {"kind": type(error).__name__})
        with suppress(OSError):
            print(told(reason, words), file=sys.stderr)
        return FAILED
    except Exception as error:  # noqa: BLE001 - told by type and place
        log_fault(logger, "The terminal failed", error)
        return _say_error(InternalError(kind=type(error).__name__), words)


def _answer(
    settings: Settings, asked: argparse.Namespace, commands: Parser, words: Catalogue
) -> int:
    backends = NamedBackends(settings, as_chosen=False)
    registry = JobRegistry(idle_limit_s=settings.idle_timeout_s + 5)
    try:
        kind = asked.backend or settings.backends[0]
        known = backends.by_id()
        named = server_id(settings.server().name) if kind == "vllm" else kind
        if named not in known:
            commands.error(words.say("terminal-no-backend", name=kind, known=", ".join(known)))
        backend = known[named]()
        params = usual_params(settings, settings.model if named == "local" else "")
        if asked.temperature is not None:
            params = replace(params, temperature=asked.temperature)
        if asked.max_tokens is not None:
            params = replace(params, max_tokens=asked.max_tokens)
        conversation = Conversation(
            registry,
            backend,
            params.at_most(settings.max_answer_tokens),
            system_prompt=settings.system_prompt if asked.system is None else asked.system,
            model=(asked.model or "") if backend.name == "vllm" else "",
            max_question_chars=settings.max_question_chars,
            view=lambda: _view(asked),
            status=StatusLine(sys.stderr),
            words=words,
        )
        if not asked.chat and (asked.question or from_input(asked.question)):
            question = question_of(asked.question)
            return code_of_answer(_told(conversation.ask(question), words))
        backend.prepare()  # while the first question is typed
        return _chat(conversation, " ".join(asked.question), words)
    finally:
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # who can't wait for the end needn't
        registry.close()
        backends.close()


def _chat(conversation: Conversation, first: str, words: Catalogue) -> int:
    """Answer one question after another. What is piped in is answered for by the exit code."""
    code = ANSWERED

    def ask(question: str) -> int:
        try:
            return code_of_answer(_told(conversation.ask(question), words))
        except LLMError as error:  # the next question may be a better one
            return _say_error(error, words)
        except KeyboardInterrupt:  # a moment too late for the answer
            return STOPPED

    if first:
        code = ask(first)
    for question in questions(words, conversation.forget):
        code = ask(question) or code
    return ANSWERED if at_keyboard() else code


def _view(asked: argparse.Namespace) -> AnswerView:
    rich = can_move(sys.stdout) and not os.environ.get("NO_COLOR") and not asked.plain
    if rich:
        from llm.terminal_rich import RichAnswer

        return RichAnswer(sys.stdout)
    return PlainAnswer(sys.stdout, sys.stderr if asked.reasoning or sys.stdout.isatty() else None)


def _told(answer: Snapshot, words: Catalogue) -> Snapshot:
    """Say how it ended: what went wrong, or what it took."""
    if answer.error is not None:
        _say_error(answer.error, words)
    else:
        _note(receipt(answer, words))
    return answer


def _say_error(error: LLMError, words: Catalogue) -> int:
    sys.stdout.flush()
    _note(told(error.reason, words))
    return code_of_error(type(error))


def _note(line: str) -> None:
    dim = can_move(sys.stderr) and not os.environ.get("NO_COLOR")
    print(f"\x1b[2m{line}\x1b[0m" if dim else line, file=sys.stderr, flush=True)


def _as_asked(settings: Settings, asked: argparse.Namespace) -> Settings:
    """The settings, but for what the command line says otherwise.

    A server that isn't there ends the question at once: a page has somebody who sees what it waits
    for, a script has the exit code. Whoever sets how long to wait is taken at their word.
    """
    changes: dict[str, object] = {}
    if "server_wait_s" not in settings.model_fields_set:
        changes["server_wait_s"] = 0.0
    if asked.model:
        named = {model.called: model for model in settings.models}
        model = named.get(asked.model)
        changes["model"] = asked.model
        if model is not None:
            changes.update(model.model_dump(exclude_none=True, exclude={"name"}))
    return settings.model_copy(update=changes)


def _speak_utf8() -> None:
    """Have standard input, output and error speak UTF-8, whatever the locale says."""
    if sys.stdin is not None and isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:  # it was closed
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def _let_output_go() -> None:
    """Have what is still in the buffers go nowhere: there is nobody to take it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _end(code: int) -> NoReturn:
    """End the process, without Python's own end: that makes an abort of what a model's loading
    still does in native code, on a thread that nobody can stop.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # of what main() wrote, it knows
        code = code or FAILED
    os._exit(code)


if __name__ == "__main__":
    try:
        ended = main(sys.argv[1:])
    except SystemExit as leaving:  # argparse's, or a signal's
        ended = leaving.code if isinstance(leaving.code, int) else FAILED
    _end(ended)
