"""An import that goes on, on a thread of its own, whatever becomes of the page that began it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from llm.conversation_import import ImportProblem, read
from llm.errors import InternalError, LLMError
from llm.fault_log import log_fault

if TYPE_CHECKING:
    from llm.conversation_archive import ConversationArchive, Imported

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImportFile:
    """A file to be imported.

    Args:
        data: gives what stands in it.
    """

    name: str
    data: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of a file, so far.

    Args:
        found: conversations that were read in it; None while it is being read.
        taken: of these, how many were looked at already.
        imported: what became of those.
        error: why it couldn't be read, or not all of it be kept.
    """

    name: str
    found: int | None = None
    taken: int = 0
    imported: Imported | None = None
    problems: tuple[ImportProblem, ...] = ()
    error: LLMError | None = None


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import is.

    Args:
        files: those that were begun; the last is the present one.
        share: of all files, 0 to 1.
        waiting: whether the present one isn't begun yet, since another import has its turn.
    """

    files: tuple[FileReport, ...]
    share: float
    done: bool
    waiting: bool = False


class _Line:
    """Lets one in at a time, in the order in which they came.

    Thread-safety: any thread.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()

    @contextmanager
    def turn(self, say_waiting: Callable[[bool], None]) -> Iterator[None]:
        """One's turn; waits for it, and says so."""
        me = object()
        with self._changed:
            self._waiting.append(me)
            say_waiting(True)
            self._changed.wait_for(lambda: self._waiting[0] is me)
            say_waiting(False)
        try:
            yield
        finally:
            with self._changed:
                self._waiting.popleft()
                self._changed.notify_all()


_line = _Line()
"""Of the whole process: a file takes several times its size while it is read."""


class ImportRun:
    """Imports files one after the other, in turns with the process's other imports.

    What came in is kept at once, step by step. Where the process ends in the middle the rest is
    missing; importing the same files again brings just that.

    Args:
        owner: whose the conversations will be.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self, archive: ConversationArchive, owner: str, files: Sequence[ImportFile]
    ) -> None:
        self._archive = archive
        self._owner = owner
        self._waiting = list(files)
        self._count = len(files)
        self._reports: tuple[FileReport, ...] = ()
        self._waits = False
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="import", daemon=True)

    def start(self) -> None:
        """Begin. Once only."""
        self._thread.start()

    def progress(self) -> ImportProgress:
        """How far it is."""
        done = self._done.is_set()
        reports = self._reports
        within = 0.0
        if reports and reports[-1].found:
            within = reports[-1].taken / reports[-1].found
        share = (max(0, len(reports) - 1) + within) / max(1, self._count)
        return ImportProgress(reports, 1.0 if done else share, done, self._waits)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, so long at most; returns whether it is reached."""
        return self._done.wait(timeout_s)

    def _run(self) -> None:
        try:
            while self._waiting:
                self._begin(self._waiting[0].name)
                with _line.turn(self._say_waiting):
                    # Given up as soon as it is read: a file may be large.
                    self._import(self._waiting.pop(0))
        finally:
            self._done.set()

    def _begin(self, name: str) -> None:
        from llm.conversation_archive import Imported

        self._reports = (*self._reports, FileReport(name, imported=Imported()))

    def _say_waiting(self, waiting: bool) -> None:
        self._waits = waiting

    def _import(self, file: ImportFile) -> None:
        from llm.conversation_archive import Imported

        report = self._reports[-1]
        try:
            result = read(file.data())
            report = self._told(
                replace(
                    report,
                    found=len(result.conversations),
                    problems=tuple(result.problems),
                )
            )
            for imported, taken in self._archive.import_some(self._owner, result.conversations):
                report = self._told(
                    replace(
                        report,
                        taken=report.taken + taken,
                        imported=(report.imported or Imported()) + imported,
                    )
                )
        except LLMError as error:
            self._told(replace(report, error=error))
        except Exception as error:  # noqa: BLE001 - the page must be told, and the others come in
            log_fault(logger, "An import failed", error)
            self._told(replace(report, error=InternalError(kind=type(error).__name__)))

    def _told(self, report: FileReport) -> FileReport:
        self._reports = (*self._reports[:-1], report)
        return report
