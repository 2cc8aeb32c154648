"""An import that goes on, on a thread of its own, whatever becomes of the page that began it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
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
    """

    files: tuple[FileReport, ...]
    share: float
    done: bool


class ImportRun:
    """Imports files one after the other.

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
        return ImportProgress(reports, 1.0 if done else share, done)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, so long at most; returns whether it is reached."""
        return self._done.wait(timeout_s)

    def _run(self) -> None:
        try:
            while self._waiting:
                # Given up as soon as it is read: a file may be large.
                self._import(self._waiting.pop(0))
        finally:
            self._done.set()

    def _import(self, file: ImportFile) -> None:
        from llm.conversation_archive import Imported

        report = FileReport(file.name, imported=Imported())
        self._reports = (*self._reports, report)
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
