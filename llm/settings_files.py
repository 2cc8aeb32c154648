"""Where settings are written: the environment, `.env` and the settings file."""

from __future__ import annotations

import difflib
import logging
import os
import re
import tomllib
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from llm.errors import Reason, SettingsError
from llm.reasons import reading_failed

PREFIX = "STEADY_CHAT_"
FILE_VARIABLE = f"{PREFIX}SETTINGS_FILE"
DOTENV = Path(".env")
DEFAULT_FILE = Path("steady_chat.toml")

logger = logging.getLogger(__name__)


def read_settings_file(settings: Collection[str]) -> dict[str, object]:
    """What the settings file says; nothing where there is none and none was named.

    Args:
        settings: the names that there are.

    Raises:
        SettingsError: a file that was named is missing, it can't be read, or it names a setting
            that there isn't.
    """
    path, named = _settings_file(), os.environ.get(FILE_VARIABLE)
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise SettingsError(
            setting=_place(path, int(found[1]) if found else 0), reason=Reason("reason-not-toml")
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and not named:
            return {}
        setting = f"{FILE_VARIABLE} ({_place(path)})" if named else _place(path)
        raise SettingsError(setting=setting, reason=reading_failed(error)) from None
    for key in told:
        if key.lower() not in settings:
            raise SettingsError(setting=_written(path, key), reason=_unknown(key, settings))
    return told


def warn_of_unknown(settings: Collection[str], dotenv: Iterable[str]) -> None:
    """Log the names, never the values, of variables that look like settings and are none.

    Args:
        settings: the names that there are.
        dotenv: the variables in `.env`.
    """
    known = {f"{PREFIX}{name}".upper() for name in settings}
    found = {(name.upper(), "the environment") for name in os.environ} - {
        (FILE_VARIABLE, "the environment")
    }
    found |= {(name.upper(), str(DOTENV)) for name in dotenv}
    for name, where in sorted(found):
        if name.startswith(PREFIX) and name not in known:
            logger.warning("%s in %s is not a setting and has no effect", name, where)


def place_of(setting: str) -> str:
    """A setting as it was written, and where: the first of its sources wins."""
    variable = f"{PREFIX}{setting}".upper()
    if any(name.upper() == variable for name in os.environ):
        return variable
    for path, name in ((DOTENV, variable), (_settings_file(), setting)):
        if _line(path, name):
            return _written(path, name)
    return setting


def _settings_file() -> Path:
    named = os.environ.get(FILE_VARIABLE)
    return Path(named).expanduser() if named else DEFAULT_FILE


def _unknown(key: str, settings: Collection[str]) -> Reason:
    bare = key.lower().removeprefix(PREFIX.lower())
    nearest = difflib.get_close_matches(bare, settings, n=1)
    if nearest:
        return Reason("reason-unknown-entry-nearest", {"nearest": nearest[0]})
    return Reason("reason-unknown-entry")


def _written(path: Path, name: str) -> str:
    return f"{name} ({_place(path, _line(path, name))})"


def _place(path: Path, line: int = 0) -> str:
    return f"{path.resolve()}:{line}" if line else str(path.resolve())


def _line(path: Path, name: str) -> int:
    """The number of the line that sets `name`, the last if several do; 0 where none is found."""
    sets = re.compile(
        rf"""\s*(?:export\s+)?\[?["']?{re.escape(name)}["']?\s*[=.\]]""", re.IGNORECASE
    )
    with suppress(OSError, ValueError):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        return max((n for n, line in enumerate(lines, 1) if sets.match(line)), default=0)
    return 0
