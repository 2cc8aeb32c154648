"""The head of a safetensors file: which tensors it has and how large they are, no weight read.

Source: https://github.com/huggingface/safetensors#format; the types' sizes are those of
safetensors 0.8, `tensor.rs`.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm.model_files import NotReadableError, open_file, parse_json

_MOST_HEADER_BYTES = 100_000_000
_MOST_DIMENSIONS = 16
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8"), 8),
    **dict.fromkeys(("F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
    **{"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6},
}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One array of weights as it lies in the file."""

    name: str
    shape: tuple[int, ...]
    length_bytes: int

    @property
    def weights(self) -> int:
        return math.prod(self.shape)


def read_safetensors_header(path: Path) -> list[StoredTensor]:
    """Read the head, and hold what it says against itself and the file's length.

    Raises:
        NotReadableError: it is no such file, says what can't be, or was cut short.
        OSError: it can't be read.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_MOST_HEADER_BYTES, size - 8):
            raise NotReadableError("length of the head")
        head = parse_json(file.read(length))
    if not isinstance(head, dict):
        raise NotReadableError("no table")
    head.pop("__metadata__", None)
    places = [(_tensor(name, told), _begin(told)) for name, told in head.items()]
    end = 0
    # One after the other without a gap: else the same bytes could be told of a thousand times.
    for tensor, begin in sorted(places, key=lambda place: (place[1], place[0].length_bytes)):
        if begin != end:
            raise NotReadableError("offsets")
        end += tensor.length_bytes
    if size < 8 + length + end:
        raise NotReadableError("cut short")
    return [tensor for tensor, _ in places]


def _begin(told: dict[str, Any]) -> int:
    begin: int = told["data_offsets"][0]
    return begin


def _tensor(name: str, told: object) -> StoredTensor:
    told = told if isinstance(told, dict) else {}
    offsets, shape = _numbers(told.get("data_offsets")), _numbers(told.get("shape"))
    if len(offsets) != 2 or len(shape) > _MOST_DIMENSIONS:
        raise NotReadableError("offsets or shape")
    tensor = StoredTensor(name, shape, offsets[1] - offsets[0])
    bits = _BITS.get(str(told.get("dtype")))
    if bits is None or tensor.length_bytes < 0 or tensor.weights * bits != 8 * tensor.length_bytes:
        raise NotReadableError("shape against length")
    return tensor


def _numbers(told: object) -> tuple[int, ...]:
    if not isinstance(told, list) or not all(type(n) is int and n >= 0 for n in told):
        raise NotReadableError("no whole numbers")
    return tuple(told)
