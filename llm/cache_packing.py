"""How both stores of the answer cache write answers, decisions and rejections as bytes, and read
them back. What can't be read, or belongs to another key, is as if it weren't there.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from llm.cache_types import (
    CLEARING_KEPT_S,
    CLOCK_AHEAD_S,
    CachedAnswer,
    CacheKey,
    Candidate,
    Decision,
    Rejection,
)
from llm.served_values import keepable
from llm.types import Delta, DeltaKind, Usage

OPENING_CHARS = 200
DECISION_CHARS = 2_000
"""Of each question in the log: it shows what happened, and isn't to become a second store."""

_UNPACKED_BYTES = 64 * 1024 * 1024
_HEX = re.compile(r"[0-9a-f]{1,128}")
_SCOPE_CHARS = 255
_KINDS: Mapping[str, DeltaKind] = {"t": "text", "r": "reasoning", "c": "recast"}
_LETTERS = {kind: letter for letter, kind in _KINDS.items()}
_CANDIDATE = struct.Struct("<ddHI")  # the script `embed` of Redis knows it, too
_REJECTION = struct.Struct("<ddH")


def possible(scope: str, *digests: str) -> bool:
    """Whether anything can have been kept under that scope and those digests or partitions."""
    return (
        0 < len(scope) <= _SCOPE_CHARS
        and keepable(scope) == scope
        and all(_HEX.fullmatch(digest) for digest in digests)
    )


def to_bytes(text: str) -> bytes:
    """Every text there is, halves of characters too: two questions that differ stay different."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: object) -> str:
    """What `to_bytes` was given.

    Raises:
        ValueError: it can't have been any.
    """
    if not isinstance(data, bytes):
        raise ValueError("no bytes")
    return data.decode("utf-8", "surrogatepass")


# -- what was cleared --


def clearing_name(model: str | None) -> str:
    """What a clearing of one model's answers, or of all, is kept under."""
    return "" if model is None else f"={keepable(model)}"


def clears(cleared_s: float, begun_s: float) -> bool:
    """Whether what was begun then is cleared too. A clock that was far ahead clears nothing."""
    return begun_s <= cleared_s < begun_s + CLEARING_KEPT_S


# -- answers --


def pack_answer(answer: CachedAnswer) -> bytes:
    """The answer with all that belongs to it, its key too, compressed."""
    values = {
        "key": [answer.key.digest, answer.key.partition, answer.key.scope],
        "question": answer.question,
        "text": "".join(piece.text for piece in answer.pieces),
        "chars": [len(piece.text) for piece in answer.pieces],
        "kinds": "".join(_LETTERS[piece.kind] for piece in answer.pieces),
        "usage": [answer.usage.prompt_tokens, answer.usage.completion_tokens],
        "model": answer.model,
        "server": answer.server,
        "times": [answer.created_s, answer.expires_s, answer.took_s],
    }
    return zlib.compress(to_bytes(json.dumps(values, ensure_ascii=False)), 1)


def unpack_answer(data: bytes, digest: str, scope: str) -> CachedAnswer | None:
    """The answer; None where the bytes are damaged, or not of that digest and scope."""
    try:
        unpacking = zlib.decompressobj()
        values = json.loads(to_text(unpacking.decompress(data, _UNPACKED_BYTES)))
        if not unpacking.eof:
            return None
        key = CacheKey(*map(_text, values["key"]))
        if (key.digest, key.scope) != (digest, scope):
            return None
        prompt_tokens, completion_tokens = map(_count, values["usage"])
        created_s, expires_s, took_s = map(_number, values["times"])
        return CachedAnswer(
            key=key,
            question=_text(values["question"]),
            pieces=_pieces(_text(values["text"]), values["chars"], _text(values["kinds"])),
            usage=Usage(prompt_tokens, completion_tokens),
            model=_text(values["model"]),
            server=_text(values["server"]),
            created_s=created_s,
            expires_s=expires_s,
            took_s=took_s,
        )
    except (zlib.error, ValueError, KeyError, TypeError, RecursionError):
        return None


def _pieces(text: str, chars: Sequence[int], kinds: str) -> tuple[Delta, ...]:
    pieces, at = [], 0
    for length, kind in zip(chars, kinds, strict=True):
        if type(length) is not int or length < 0:
            raise ValueError("no length")
        pieces.append(Delta(text[at : at + length], _KINDS[kind]))
        at += length
    if at != len(text):
        raise ValueError("the pieces are not the text")
    return tuple(pieces)


@dataclass(frozen=True, slots=True)
class Listed:
    """What a list shows of an answer, as every page and database takes it."""

    question: str
    opening: str
    chars: int
    model: str
    server: str
    created_s: float
    expires_s: float


def listed(answer: CachedAnswer) -> Listed:
    """What a list shows of this answer."""
    text = answer.text
    return Listed(
        question=keepable(answer.question),
        opening=keepable(text[:OPENING_CHARS]),
        chars=len(text),
        model=keepable(answer.model),
        server=keepable(answer.server),
        created_s=answer.created_s,
        expires_s=answer.expires_s,
    )


def pack_listed(shown: Listed) -> bytes:
    """As JSON."""
    return to_bytes(json.dumps(asdict(shown), ensure_ascii=False))


def unpack_listed(data: bytes | None) -> Listed | None:
    """What was packed; None where it is damaged or missing."""
    return None if data is None else _read(Listed, data)


# -- the log --


def pack_decision(decision: Decision) -> bytes:
    """As JSON, without what a person said of it since."""
    short = replace(
        decision,
        question=decision.question[:DECISION_CHARS],
        other=decision.other[:DECISION_CHARS],
        judged=None,
    )
    return to_bytes(json.dumps(asdict(short), ensure_ascii=False))


def unpack_decision(data: bytes, scope: str, judged: bool | None) -> Decision | None:
    """The decision; None where it is damaged or another scope's."""
    decision = _read(Decision, data)
    if decision is None or decision.scope != scope:
        return None
    return replace(decision, judged=judged)


# -- vectors --


def pack_candidate(candidate: Candidate, created_s: float, expires_s: float) -> bytes:
    """All but its digest."""
    embedding, question = to_bytes(candidate.embedding), to_bytes(candidate.question)
    head = _CANDIDATE.pack(created_s, expires_s, len(embedding), len(question))
    return b"".join((head, embedding, question, candidate.vector))


def unpack_candidate(data: bytes, digest: str, now_s: float) -> tuple[float, Candidate] | None:
    """When it was made, and the candidate; None where it is damaged, expired, or by a
    clock that was ahead."""
    try:
        created_s, expires_s, embedding_bytes, question_bytes = _CANDIDATE.unpack_from(data)
        if expires_s <= now_s or created_s > now_s + CLOCK_AHEAD_S:
            return None
        question_at = _CANDIDATE.size + embedding_bytes
        vector_at = question_at + question_bytes
        candidate = Candidate(
            digest,
            to_text(data[question_at:vector_at]),
            _vector_or_none(data[vector_at:]),
            to_text(data[_CANDIDATE.size : question_at]),
        )
        return created_s, candidate
    except (struct.error, ValueError):
        return None


def pack_rejection(rejection: Rejection) -> bytes:
    """All of it."""
    embedding = to_bytes(rejection.embedding)
    head = _REJECTION.pack(rejection.similarity, rejection.at_s, len(embedding))
    return b"".join((head, embedding, rejection.vector))


def unpack_rejection(data: bytes) -> Rejection | None:
    """The rejection; None where it is damaged."""
    try:
        similarity, at_s, embedding_bytes = _REJECTION.unpack_from(data)
        vector_at = _REJECTION.size + embedding_bytes
        return Rejection(
            _vector(data[vector_at:]),
            to_text(data[_REJECTION.size : vector_at]),
            similarity,
            at_s,
        )
    except (struct.error, ValueError):
        return None


def candidate_of(digest: str, question: object, vector: object, model: str) -> Candidate | None:
    """The candidate of these values; None where one is damaged."""
    try:
        return Candidate(digest, to_text(question), _vector_or_none(vector), model)
    except ValueError:
        return None


def _vector(data: object) -> bytes:
    if not isinstance(data, bytes) or not data or len(data) % 4:
        raise ValueError("no vector of float32")
    return data


def _vector_or_none(data: object) -> bytes:
    return data if isinstance(data, bytes) and not data else _vector(data)


# -- values of the right type, or ValueError --


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float):
        raise ValueError("no number")
    return float(value)  # type: ignore[arg-type]


def _count(value: object) -> int | None:
    if value is not None and type(value) is not int:
        raise ValueError("no count")
    return value


_T = TypeVar("_T")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "float | None": (float, int, type(None)),
    "bool | None": (bool, type(None)),
    "DecisionKind": (str,),
}


def _read(kind: type[_T], data: bytes) -> _T | None:
    """A dataclass of plain values from its JSON; None where that isn't what it should be."""
    try:
        values: Any = json.loads(to_text(data))
        for field in fields(kind):  # type: ignore[arg-type]
            if type(values[field.name]) not in _TYPES[str(field.type)]:
                return None
        return kind(**values)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
