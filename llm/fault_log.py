"""Puts a fault into the log without what people wrote."""

from __future__ import annotations

import logging
import traceback


def log_fault(logger: logging.Logger, what: str, error: BaseException) -> None:
    """Log what failed, the error's type and the places in the source that it came through.

    Never its text: an exception may quote the question, the answer or a key.
    """
    places = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    logger.error("%s: %s\n%s", what, type(error).__name__, places)
