"""Names of files made of conversations' titles, which every file system takes."""

from __future__ import annotations

import re
import unicodedata

MAX_NAME_BYTES = 120
"""Without number and ending. File systems take 255; some programs less, with the folder's path."""

_NOT_TAKEN = re.compile(r'[<>:"/\\|?*\s]+')
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\.|$)", re.IGNORECASE)
"""Source: https://learn.microsoft.com/windows/win32/fileio/naming-a-file"""


class FileNames:
    """Gives each title a name that none before had, whether case counts or not.

    Thread-safety: none.

    Args:
        untitled: the name where a title leaves nothing.
    """

    def __init__(self, untitled: str) -> None:
        self._untitled = untitled
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def name(self, title: str, ending: str) -> str:
        """The name, with an ending such as `.md`."""
        base = file_name(title) or self._untitled
        name, number = base, self._next.get(_seen_as(base), 2)
        while _seen_as(name) in self._taken:
            name = f"{base} ({number})"
            number += 1
        self._next[_seen_as(base)] = number
        self._taken.add(_seen_as(name))
        return name + ending


def file_name(title: str) -> str:
    """The title without what Windows, macOS or Linux refuse in a name; may be empty."""
    title = unicodedata.normalize("NFC", title)
    # Control and format characters, half characters; among them what turns the writing direction.
    title = "".join(
        char for char in title if unicodedata.category(char)[0] != "C" or char.isspace()
    )
    name = _NOT_TAKEN.sub(" ", title).strip(" .")
    name = name.encode()[:MAX_NAME_BYTES].decode(errors="ignore").strip(" .")
    return f"_{name}" if _RESERVED.match(name) else name


def _seen_as(name: str) -> str:
    """What a file system that looks away from case takes the name for."""
    return unicodedata.normalize("NFKC", name.casefold())
