"""Exit codes: how a script is told what became of its question."""

from __future__ import annotations

from llm.errors import (
    ContextOverflowError,
    InvalidRequestError,
    LLMError,
    ModelError,
    NotAllowedError,
    NotSignedInError,
    OutOfMemoryError,
    QuestionTooLongError,
    ServerError,
    ServerKeyError,
    ServerModelUnknownError,
    ServerNoModelError,
    ServerParameterError,
    SettingsError,
)
from llm.job import Snapshot

ANSWERED, FAILED, USAGE, SETTINGS, SERVER = 0, 1, 2, 3, 4
REFUSED, TOO_LONG, CUT, MODEL = 5, 6, 7, 8
STOPPED, NO_READER = 130, 141
"""As shells have them for SIGINT and SIGPIPE."""

CODES = (
    ANSWERED,
    FAILED,
    USAGE,
    SETTINGS,
    SERVER,
    REFUSED,
    TOO_LONG,
    CUT,
    MODEL,
    STOPPED,
    NO_READER,
)
"""Each has its meaning in the catalogue, as `terminal-exit-<code>`."""

_BRANCHES: dict[type[BaseException], int] = {
    LLMError: FAILED,
    InvalidRequestError: USAGE,
    QuestionTooLongError: TOO_LONG,
    ContextOverflowError: TOO_LONG,
    NotAllowedError: REFUSED,
    NotSignedInError: REFUSED,
    SettingsError: SETTINGS,
    ModelError: MODEL,
    OutOfMemoryError: MODEL,
    ServerError: SERVER,
    ServerKeyError: REFUSED,
    ServerModelUnknownError: MODEL,
    ServerNoModelError: MODEL,
    ServerParameterError: USAGE,
}


def code_of_error(kind: type[LLMError]) -> int:
    """The code of an error's branch of the tree: its own, or that of its nearest parent."""
    return next(_BRANCHES[each] for each in kind.__mro__ if each in _BRANCHES)


def code_of_answer(answer: Snapshot) -> int:
    """The code of an answer that is over."""
    if answer.error is not None:
        return code_of_error(type(answer.error))
    reason = answer.finish.reason if answer.finish is not None else "error"
    return {"stop": ANSWERED, "length": CUT, "abort": STOPPED}.get(reason, FAILED)
