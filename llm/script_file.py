"""The JSON file that tells the scripted backend what to say."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm.errors import SettingsError
from llm.scripted_backend import Script


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """What such a file says."""

    default: Script | None
    rules: tuple[tuple[str, Script], ...]
    slots: int
    ready_after_s: float


def read_script_file(path: Path) -> ScriptFile:
    """Read and check it.

    Raises:
        SettingsError: naming the place in the file and what is wrong there.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _wrong(f"{path}: {error.strerror or type(error).__name__}") from None
    except ValueError as error:
        raise _wrong(f"{path}: {error}") from None
    top = _object(told, "the file", {"default", "rules", "slots", "ready_after_s"})
    folder = path.parent
    rules = top.get("rules", [])
    if not isinstance(rules, list):
        raise _wrong("rules: a list is needed")
    slots = top.get("slots", 32)
    if not isinstance(slots, int) or isinstance(slots, bool) or slots < 1:
        raise _wrong("slots: a whole number from 1 is needed")
    ready_after_s = top.get("ready_after_s", 0)
    number = isinstance(ready_after_s, int | float) and not isinstance(ready_after_s, bool)
    if not number or not 0 <= ready_after_s < math.inf:
        raise _wrong("ready_after_s: a number from 0 is needed")
    return ScriptFile(
        default=_script(top["default"], "default", folder) if "default" in top else None,
        rules=tuple(_rule(rule, f"rules[{at}]", folder) for at, rule in enumerate(rules)),
        slots=slots,
        ready_after_s=float(ready_after_s),
    )


def _rule(told: object, place: str, folder: Path) -> tuple[str, Script]:
    fields = dict(_object(told, place, None))
    when = fields.pop("when", None)
    if not isinstance(when, str) or not when:
        raise _wrong(f"{place}.when: a text that the question contains is needed")
    return when, _script(fields, place, folder)


def _script(told: object, place: str, folder: Path) -> Script:
    from pydantic import TypeAdapter, ValidationError

    fields = dict(_object(told, place, None))
    text_file = fields.pop("text_file", None)
    if text_file is not None:
        if "text" in fields or not isinstance(text_file, str):
            raise _wrong(f"{place}.text_file: a file name is needed, in place of text")
        try:
            fields["text"] = (folder / text_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _wrong(f"{place}.text_file: {type(error).__name__}") from None
    try:
        return TypeAdapter(Script).validate_python(fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join([place, *(str(part) for part in first["loc"])])
        raise _wrong(f"{where}: {first['msg']}") from None


def _object(told: object, place: str, keys: set[str] | None) -> Mapping[str, Any]:
    if not isinstance(told, dict):
        raise _wrong(f"{place}: an object is needed")
    unknown = sorted(set(told) - keys) if keys is not None else []
    if unknown:
        raise _wrong(f"{place}: there is no “{unknown[0]}”")
    return told


def _wrong(reason: str) -> SettingsError:
    return SettingsError(setting="scripts_file", reason=reason)
