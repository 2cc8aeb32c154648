"""A person's conversations written into a file, for a download.

Written to the disk as they are read, so that many take little memory. The file has no name and is
gone when it is closed.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import IO, TYPE_CHECKING, cast

from llm.conversation_export import to_json, write_markdown_zip

if TYPE_CHECKING:
    from llm.conversation_archive import ConversationArchive


def json_file(archive: ConversationArchive, owner: str) -> io.FileIO:
    """All of them as JSON, as `conversation_import.read` takes it.

    Raises:
        StoreError: the database can't be had.
    """

    def write(file: IO[bytes]) -> None:
        for piece in to_json(archive.export_all(owner)):
            file.write(piece.encode())

    return _written(write)


def markdown_file(
    archive: ConversationArchive, owner: str, language: str = "en", zone: tzinfo = UTC
) -> io.FileIO:
    """All of them as a ZIP of Markdown files.

    Raises:
        StoreError: the database can't be had.
    """
    return _written(
        lambda file: write_markdown_zip(archive.export_all(owner), file, language, zone)
    )


def _written(write: Callable[[IO[bytes]], None]) -> io.FileIO:
    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the reader closes it
    try:
        buffered = io.BufferedRandom(file)
        write(cast("IO[bytes]", buffered))
        buffered.flush()
        buffered.detach()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file
