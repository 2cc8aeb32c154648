"""The values of a turn as JSON and back: what the database keeps, what an export holds.

Reading is lenient, since a file may come from another version of this app or be edited by hand:
what isn't known is left out, what can't be is replaced by the usual value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, get_args

from llm import errors
from llm.catalogue import catalogue
from llm.conversation_tree import Receipt
from llm.errors import InternalError, LLMError, Reason
from llm.screen_figures import ScreenFigures
from llm.served_values import told_count
from llm.types import Finish, FinishReason, FromCache, MatchKind, SamplingParams, Usage

_DEEPEST = 8  # sentences within sentences; a file made on purpose could go on for ever


def params_to_json(params: SamplingParams) -> dict[str, Any]:
    """The parameters that aren't left out; those that are left out as null where they have a
    usual value."""
    usual = SamplingParams()
    values = asdict(params)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value not in (None, ()) or getattr(usual, name) is not None
    }


def params_from_json(values: object) -> SamplingParams:
    """The parameters; the usual ones in place of what can't be used."""
    if not isinstance(values, Mapping):
        return SamplingParams()
    known = {each.name for each in fields(SamplingParams)}
    usable: dict[str, Any] = {}
    for name in known & values.keys():
        value: Any = tuple(values[name]) if isinstance(values[name], list) else values[name]
        if not _right_kind(name, value):
            continue
        try:
            SamplingParams(**{name: value})
        except (LLMError, OverflowError):
            continue
        usable[name] = value
    return SamplingParams(**usable)


def _right_kind(name: str, value: object) -> bool:
    """Whether a value is of the kind that the parameter is declared to be."""
    if name == "stop":
        return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
    if value is None:
        return name != "max_tokens"
    whole = name in ("max_tokens", "seed", "top_k")
    return isinstance(value, int if whole else int | float) and not isinstance(value, bool)


def receipt_to_json(receipt: Receipt) -> dict[str, Any]:
    """All that is known."""
    values = asdict(receipt)
    values["finish"] = receipt.finish.reason
    values["usage"] = asdict(receipt.finish.usage)
    if receipt.finish.why is not None:
        values["why"] = _reason_to_json(receipt.finish.why)
    return {name: value for name, value in values.items() if value is not None}


def receipt_from_json(values: object) -> Receipt | None:
    """The receipt; None where the value is none."""
    if not isinstance(values, Mapping):
        return None
    told: Any = values.get("finish")
    reason: FinishReason = told if told in get_args(FinishReason) else "stop"
    usage = values.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return Receipt(
        model=_text(values.get("model")),
        finish=Finish(
            reason,
            Usage(
                told_count(usage.get("prompt_tokens")), told_count(usage.get("completion_tokens"))
            ),
            why=_reason_from_json(values.get("why")),
        ),
        server=_text(values.get("server")),
        ttft_s=_number(values.get("ttft_s")),
        tokens_per_s=_number(values.get("tokens_per_s")),
        left_out=told_count(values.get("left_out")) or 0,
        reasoning_s=_number(values.get("reasoning_s")),
        waited_s=_number(values.get("waited_s")),
        cached=_from_cache(values.get("cached")),
        decode_s=_number(values.get("decode_s")),
        itl_p50_ms=_number(values.get("itl_p50_ms")),
        itl_p95_ms=_number(values.get("itl_p95_ms")),
        screen=_screen(values.get("screen")),
    )


def _screen(values: object) -> ScreenFigures | None:
    if not isinstance(values, Mapping):
        return None
    return ScreenFigures(
        longest_freeze_ms=_number(values.get("longest_freeze_ms")),
        inp_ms=_number(values.get("inp_ms")),
        blocked_ms=_number(values.get("blocked_ms")),
        lag_ms=_number(values.get("lag_ms")),
        frames=told_count(values.get("frames")),
        bytes_sent=told_count(values.get("bytes_sent")),
    )


def _from_cache(values: object) -> FromCache | None:
    if not isinstance(values, Mapping):
        return None
    kind: Any = values.get("kind")
    created_s = _number(values.get("created_s"))
    if kind not in get_args(MatchKind) or created_s is None:
        return None
    return FromCache(
        kind=kind,
        digest=_text(values.get("digest")),
        created_s=created_s,
        question=_text(values.get("question")),
        similarity=_number(values.get("similarity")),
        decision=_text(values.get("decision")),
    )


def error_to_json(error: LLMError) -> dict[str, Any]:
    """The error's kind and what fills its sentence; never a text, which has a language."""
    return {"kind": type(error).__name__, "values": _plain(error.values)}


def error_from_json(values: object) -> LLMError | None:
    """The error; None where the value is none, an InternalError where its kind isn't known."""
    if not isinstance(values, Mapping):
        return None
    kind = _text(values.get("kind"))
    told = values.get("values")
    known = _kinds().get(kind)
    if known is None or not isinstance(told, Mapping):
        return InternalError(kind=kind or "unknown")
    try:
        error = known(**{str(name): _value(value) for name, value in told.items()})
        str(error)
    except Exception:  # noqa: BLE001 - the catalogue's own, for a sentence that lacks its values
        return InternalError(kind=kind)
    return error


def _kinds() -> dict[str, type[LLMError]]:
    return {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, LLMError)
    }


def _reason_to_json(reason: Reason) -> dict[str, Any]:
    return {"reason": reason.message_id, "values": _plain(reason.values)}


def _reason_from_json(value: object) -> Reason | None:
    """The reason; None where the value is none that can be said."""
    reason = _value(value) if isinstance(value, Mapping) else None
    if not isinstance(reason, Reason) or not reason.message_id.startswith("finish-"):
        return None
    try:
        reason.sentence(catalogue("en"))
    except Exception:  # noqa: BLE001 - the catalogue's own, for a sentence that lacks its values
        return None
    return reason


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_plain_items(values))


def _plain_items(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Reason):
            yield name, _reason_to_json(value)
        else:
            yield name, value


def _value(value: object, depth: int = 0) -> str | int | float | Reason:
    if isinstance(value, Mapping) and depth < _DEEPEST:
        within = value.get("values")
        return Reason(
            _text(value.get("reason")),
            {
                str(name): _value(each, depth + 1)
                for name, each in (within.items() if isinstance(within, Mapping) else ())
            },
        )
    return value if isinstance(value, str | int | float) else str(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return float(value) if usable and math.isfinite(value) else None  # type: ignore[arg-type]
    except OverflowError:  # a whole number without end
        return None
