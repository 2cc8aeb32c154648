"""The JSON file that tells the scripted backend what to say."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm.errors import Reason, SettingsError
from llm.flight_record import schedule_of
from llm.reasons import WrongValueError, first_wrong, reading_failed
from llm.script import Script


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """What such a file says."""

    default: Script | None
    rules: tuple[tuple[str, Script], ...]
    slots: int
    ready_after_s: float
    window_tokens: int | None


def read_script_file(path: Path) -> ScriptFile:
    """Read and check it.

    Raises:
        SettingsError: naming the place in the file and what is wrong there.
    """
    try:
        return _file(json.loads(path.read_text(encoding="utf-8")), path.parent)
    except json.JSONDecodeError as error:
        place, reason = f"{path}:{error.lineno}", Reason("reason-not-json")
    except WrongValueError as error:
        place, reason = f"{path}: {error.place}" if error.place else f"{path}", error.reason
    except (OSError, ValueError, RecursionError) as error:
        place, reason = f"{path}", reading_failed(error)
    raise SettingsError(setting=f"scripts_file ({place})", reason=reason)


def _file(told: object, folder: Path) -> ScriptFile:
    top = _object(told, "")
    for key in sorted(set(top) - {"default", "rules", "slots", "ready_after_s", "window_tokens"}):
        raise WrongValueError(Reason("reason-unknown-entry"), key)
    rules = top.get("rules", [])
    if not isinstance(rules, list):
        raise WrongValueError(Reason("reason-list"), "rules")
    slots = _from_1(top.get("slots", 32), "slots")
    window_tokens = top.get("window_tokens")
    ready_after_s = top.get("ready_after_s", 0)
    number = isinstance(ready_after_s, int | float) and not isinstance(ready_after_s, bool)
    if not number or not math.isfinite(ready_after_s):
        raise WrongValueError(Reason("reason-number"), "ready_after_s")
    if ready_after_s < 0:
        raise WrongValueError(Reason("reason-at-least", {"limit": 0}), "ready_after_s")
    return ScriptFile(
        default=_script(top["default"], "default", folder) if "default" in top else None,
        rules=tuple(_rule(rule, f"rules[{at}]", folder) for at, rule in enumerate(rules)),
        slots=slots,
        ready_after_s=float(ready_after_s),
        window_tokens=None if window_tokens is None else _from_1(window_tokens, "window_tokens"),
    )


def _from_1(number: object, place: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise WrongValueError(Reason("reason-whole-number"), place)
    if number < 1:
        raise WrongValueError(Reason("reason-at-least", {"limit": 1}), place)
    return number


def _rule(told: object, place: str, folder: Path) -> tuple[str, Script]:
    fields = dict(_object(told, place))
    when = fields.pop("when", None)
    if not isinstance(when, str) or not when:
        raise WrongValueError(Reason("reason-needle"), f"{place}.when")
    return when, _script(fields, place, folder)


def _script(told: object, place: str, folder: Path) -> Script:
    from pydantic import TypeAdapter, ValidationError

    fields = dict(_object(told, place))
    text_file = fields.pop("text_file", None)
    if text_file is not None:
        if "text" in fields or not isinstance(text_file, str):
            raise WrongValueError(Reason("reason-text-file"), f"{place}.text_file")
        try:
            fields["text"] = (folder / text_file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise WrongValueError(reading_failed(error), f"{place}.text_file") from None
    flight_file = fields.pop("flight_file", None)
    if flight_file is not None:
        if "schedule" in fields or not isinstance(flight_file, str):
            raise WrongValueError(Reason("reason-flight-file"), f"{place}.flight_file")
        try:
            told = (folder / flight_file).read_text(encoding="utf-8")
            fields["schedule"] = schedule_of(told)
        except (OSError, ValueError) as error:
            raise WrongValueError(reading_failed(error), f"{place}.flight_file") from None
    try:
        return TypeAdapter(Script).validate_python(fields)
    except ValidationError as error:
        inside, reason = first_wrong(error)
        raise WrongValueError(reason, ".".join([place, *inside])) from None


def _object(told: object, place: str) -> Mapping[str, Any]:
    if not isinstance(told, dict):
        raise WrongValueError(Reason("reason-object"), place)
    return told
