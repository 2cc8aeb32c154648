"""Reads conversations from a file: this app's own export, ChatGPT's, Open WebUI's.

What a file is is told by what stands in it, never by its name; a ZIP with such files is opened.
What can't be read is named, entry by entry, and the rest comes in. A file may hold anything: memory
stays in proportion to it, and nothing in it makes reading go on for ever.
"""

from __future__ import annotations

import hashlib
import io
import logging
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from llm.conversation_tree import (
    Conversation,
    ConversationKey,
    ConversationState,
    new_id,
    title_of,
)
from llm.errors import ImportDamagedError, ImportFileError, ImportTooLargeError, Reason
from llm.fault_log import log_fault
from llm.import_chatgpt import is_chatgpt, read_chatgpt
from llm.import_notes import MAX_TEXT_CHARS, Notes, mapping, name
from llm.import_open_webui import is_open_webui, read_open_webui
from llm.import_steady_chat import is_steady_chat, read_steady_chat
from llm.json_entries import MAX_ENTRY_CHARS, NotJsonError, Unreadable, entries
from llm.message_tree import Budget, MessageTree, TangledError, turns_of

MAX_IMPORT_BYTES = 200_000_000
MAX_UNPACKED_BYTES = 1_000_000_000
"""Of a ZIP's JSON files together."""
MAX_MEMBERS = 50_000
"""Files in a ZIP; an export with pictures has thousands."""
MAX_CONVERSATIONS = 100_000
MAX_PROBLEMS = 10_000
"""Entries that can't be read, after which reading stops: this is no such file."""
MAX_MARK_CHARS = 80

_MB = 1_000_000
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_ZIP_ENTRY = b"PK\x01\x02"
_ZIP_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_USUAL_MEMBER = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json", re.IGNORECASE)
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """What of an entry couldn't be taken in: all of it, or what the reason says.

    Args:
        row: the entry's number in its file, from 1.
        title: the conversation's, where it has one.
        file: which file of a ZIP; empty where there is but one.
        left_out: whether nothing of the entry came in.
    """

    row: int
    reason: Reason
    title: str = ""
    file: str = ""
    left_out: bool = True


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What came in, in the file's order, and what didn't.

    The conversations belong to nobody yet (`key.owner` is empty); their ids and those of their
    turns are new, and `import_mark` tells whether the same was imported before.
    """

    conversations: list[ConversationState] = field(default_factory=list)
    problems: list[ImportProblem] = field(default_factory=list)


def read(data: bytes) -> ImportResult:
    """Read a file.

    Takes about a second for 10 MB. May be called from any thread.

    Args:
        data: the file as it is.

    Raises:
        ImportFileError: there is no conversation in it, or it is no such file at all.
        ImportTooLargeError: it is larger than MAX_IMPORT_BYTES.
        ImportDamagedError: it is damaged before the first conversation.
    """
    if len(data) > MAX_IMPORT_BYTES:
        raise ImportTooLargeError(limit=MAX_IMPORT_BYTES // _MB)
    reading = _Reading()
    try:
        if data.startswith(_ZIP_STARTS):
            _read_zip(data, reading)
        else:
            reading.read(io.BytesIO(data))
    except NotJsonError:
        raise ImportFileError from None
    except _FullError:
        pass
    return reading.result()


def own_mark(conversation_id: str) -> str:
    """The import mark of a conversation that was made here, when its export is imported."""
    return _mark("steady-chat", conversation_id)


class _FullError(Exception):
    """As much as is allowed was read."""


class _Reading:
    """A file being read.

    Thread-safety: none.
    """

    def __init__(self) -> None:
        self._result = ImportResult()
        self._budget = Budget()
        self._recognised = 0
        self._damaged = False
        self._empty_lists = 0
        self._unreadable = 0

    def read(self, stream: BinaryIO, file: str = "") -> None:
        """Take in a JSON document's entries.

        Raises:
            NotJsonError: it is none; nothing was taken in.
            _FullError: nothing more can be taken in.
        """
        row, recognised, problems = 0, self._recognised, len(self._result.problems)
        for row, entry in enumerate(entries(stream), start=1):
            self._take(entry, row, file)
        if row == 0:
            self._empty_lists += 1
        if file and self._recognised == recognised and not self._damaged:
            # Not meant to hold conversations: other files stand in a ZIP as well.
            del self._result.problems[problems:]

    def cut_off(self, file: str, reason: Reason) -> None:
        """Nothing more of this file can be read."""
        self._damaged = True
        self._problem(ImportProblem(0, reason, file=file))

    def result(self) -> ImportResult:
        """What was read.

        Raises:
            ImportFileError, ImportDamagedError: nothing in it is a conversation.
        """
        if self._recognised or self._empty_lists:
            return self._result
        raise ImportDamagedError if self._damaged else ImportFileError

    def _take(self, entry: object, row: int, file: str) -> None:
        if len(self._result.conversations) >= MAX_CONVERSATIONS:
            self._problem(
                ImportProblem(
                    row, Reason("reason-import-many", {"limit": MAX_CONVERSATIONS}), file=file
                )
            )
            raise _FullError
        if isinstance(entry, Unreadable):
            self._damaged = True
            self._problem(ImportProblem(row, _WHY[entry.why], file=file))
            return
        title = name(mapping(entry).get("title"))
        notes = Notes()
        try:
            state = self._state(entry, notes)
        except _UnusableError as unusable:
            self._problem(ImportProblem(row, unusable.reason, title, file))
        except Exception as error:  # noqa: BLE001 - one entry's trouble is never another's
            log_fault(logger, "an entry of an imported file could not be read", error)
            self._problem(ImportProblem(row, Reason("reason-import-unreadable"), title, file))
        else:
            self._result.conversations.append(state)
            for reason in _noted(notes):
                problem = ImportProblem(row, reason, state.head.title, file, left_out=False)
                self._result.problems.append(problem)

    def _state(self, entry: object, notes: Notes) -> ConversationState:
        if is_steady_chat(entry):
            state = _marked(read_steady_chat(mapping(entry), notes))
        elif is_chatgpt(entry):
            state = self._of_tree(read_chatgpt(mapping(entry), notes), notes)
        elif is_open_webui(entry):
            state = self._of_tree(read_open_webui(mapping(entry), notes), notes)
        else:
            raise _UnusableError(Reason("reason-import-entry"))
        self._recognised += 1
        if not state.turns:
            raise _UnusableError(Reason("reason-import-no-messages"))
        return state

    def _of_tree(self, tree: MessageTree, notes: Notes) -> ConversationState:
        self._recognised += 1
        try:
            turns, leaf = turns_of(tree, self._budget, notes)
        except TangledError:
            raise _UnusableError(Reason("reason-import-branches")) from None
        moments = [turn.created_s for turn in turns.values() if turn.created_s]
        title = title_of(tree.title)
        question = next((turn.question for turn in turns.values() if turn.question.strip()), "")
        head = Conversation(
            key=ConversationKey("", new_id()),
            title=title or title_of(question),
            title_by="model" if title else "question",
            pinned=tree.pinned,
            created_s=tree.created_s or min(moments, default=0.0),
            updated_s=tree.updated_s or max(moments, default=tree.created_s),
            leaf=leaf,
            import_mark=_mark(tree.source, tree.own_id or _content_hash(tree)),
        )
        return ConversationState(head, turns)

    def _problem(self, problem: ImportProblem) -> None:
        self._result.problems.append(problem)
        self._unreadable += 1
        if self._unreadable >= MAX_PROBLEMS:
            raise _FullError


class _UnusableError(Exception):
    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.message_id)
        self.reason = reason


_WHY = {
    "damaged": Reason("reason-import-damaged"),
    "large": Reason("reason-import-large", {"limit": MAX_ENTRY_CHARS // _MB}),
    "deep": Reason("reason-import-unreadable"),
}


def _noted(notes: Notes) -> Iterator[Reason]:
    if notes.cut:
        yield Reason("reason-import-cut", {"count": notes.cut, "limit": MAX_TEXT_CHARS})
    if notes.left_out:
        yield Reason("reason-import-left-out", {"count": notes.left_out})


def _marked(state: ConversationState) -> ConversationState:
    """The conversation with a whole mark in place of an id alone."""
    told = state.head.import_mark
    if not told:
        told = _hash(f"{turn.question}\0{turn.text}" for turn in state.turns.values())
    mark = told if ":" in told and len(told) <= MAX_MARK_CHARS else own_mark(told)
    return replace(state, head=replace(state.head, import_mark=mark))


def _mark(source: str, own_id: str) -> str:
    mark = f"{source}:{own_id}"
    return mark if len(mark) <= MAX_MARK_CHARS else f"{source}:{_hash([own_id])}"


def _content_hash(tree: MessageTree) -> str:
    return _hash((tree.title, *(f"{node.role}\0{node.text}" for node in tree.nodes)))


def _hash(texts: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:40]


class _TooMuchError(Exception):
    """More was unpacked than is allowed."""


class _Unpacked(io.RawIOBase):
    """A ZIP's file as it is unpacked, with an end to how much that may be.

    What a ZIP says of its sizes is never believed.
    """

    def __init__(self, stream: BinaryIO, allowed: list[int]) -> None:
        self._stream = stream
        self._allowed = allowed

    def read(self, size: int = -1) -> bytes:
        read = self._stream.read(size)
        self._allowed[0] -= len(read)
        if self._allowed[0] < 0:
            raise _TooMuchError
        return read


def _read_zip(data: bytes, reading: _Reading) -> None:
    # Each of a ZIP's entries takes memory before the first is looked at.
    if data.count(_ZIP_ENTRY) > MAX_MEMBERS:
        raise ImportFileError
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [each for each in archive.infolist() if _may_hold(each.filename)]
            usual = [each for each in members if _USUAL_MEMBER.fullmatch(each.filename)]
            _read_members(archive, usual or members, reading)
    except (zipfile.BadZipFile, struct.error, ValueError, OSError, NotImplementedError):
        raise ImportDamagedError from None


def _may_hold(file: str) -> bool:
    return file.lower().endswith(".json") and not file.startswith("__MACOSX/")


def _read_members(
    archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], reading: _Reading
) -> None:
    allowed = [MAX_UNPACKED_BYTES]
    several = len(members) > 1
    for member in sorted(members, key=lambda each: each.filename):
        file = name(member.filename) if several else ""
        try:
            if member.compress_type not in _ZIP_KINDS or member.flag_bits & 1:
                raise zipfile.BadZipFile
            with archive.open(member) as stream:
                reading.read(_Unpacked(stream, allowed), file)  # type: ignore[arg-type]
        except NotJsonError:
            continue
        except _TooMuchError:
            limit = MAX_UNPACKED_BYTES // _MB
            reading.cut_off(file, Reason("reason-import-unpacked", {"limit": limit}))
            return
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError):
            reading.cut_off(file, Reason("reason-import-packed"))
