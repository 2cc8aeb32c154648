"""Runs `llm.local_convert` in a process of its own, watches it and tells what came of it."""

from __future__ import annotations

import logging
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from llm.child_lines import environment, read_error, read_line
from llm.errors import LLMError, ModelError, NotAModelError, Reason, WeightsTooLargeError
from llm.local_conversions import part_of
from llm.types import CancelToken
from llm.wheel_download import FetchStopped, bytes_in

log = logging.getLogger(__name__)

_STALL_S = 600.0
_EXIT_S = 60.0
_TAIL_BYTES = 2000
_KILLED = -9  # where it wasn't us: the kernel's out-of-memory killer

Progress = Callable[[float | None], None]


def run_converter(source: Path, folder: Path, cancel: CancelToken, progress: Progress) -> None:
    """Convert `source` into `folder`; the lock is held.

    What the process says on stderr is for the log alone, and only where it fails.

    Raises:
        LLMError: why it can't be converted.
        FetchStopped: cancelled.
    """
    command = [sys.executable, "-m", "llm.local_convert"]
    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            [*command, str(source.resolve()), str(folder.resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment(),
        )
        forget = cancel.on_cancel(process.kill)
        try:
            failure = _follow(process, source, folder, progress)
        finally:
            forget()
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
        if cancel.cancelled:
            raise FetchStopped
        if folder.is_dir():  # it has this name only when it is whole
            return
        log.warning(
            "converting %s failed (exit code %d); the end of what it said:\n%s",
            *(source.name, process.returncode, _tail(stderr)),
        )
    if failure is not None:
        raise failure
    if process.returncode == _KILLED:
        raise WeightsTooLargeError(model=source.name)
    raise NotAModelError(model=source.name, reason=Reason("reason-gguf-not-converted"))


def _follow(
    process: subprocess.Popen[bytes], source: Path, folder: Path, progress: Progress
) -> LLMError | None:
    """Wait for the end of the process, passing on how far it is; the failure it told of."""
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    assert process.stdout is not None
    # A thread, since waiting for a line of a pipe knows no timeout everywhere.
    threading.Thread(
        target=_read, args=(process.stdout, lines), name="read-converter", daemon=True
    ).start()
    failure: LLMError | None = None
    written_bytes = 0
    while True:
        try:
            line = lines.get(timeout=_STALL_S)
        except queue.Empty:
            # It says nothing while it writes, but then the files grow.
            before, written_bytes = written_bytes, bytes_in(part_of(folder))
            if written_bytes != before:
                continue
            reason = Reason("reason-conversion-stalled", {"minutes": round(_STALL_S / 60)})
            return ModelError(model=source.name, reason=reason)
        if line is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_EXIT_S)
            return failure
        said = read_line(line)
        if "progress" in said:
            progress(said["progress"])
        failure = read_error(said) or failure


def _read(stdout: IO[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    with stdout:
        for line in stdout:
            lines.put(line)
    lines.put(None)


def _tail(stderr: IO[bytes]) -> str:
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, size - _TAIL_BYTES))
    return stderr.read().decode("utf-8", "replace")
