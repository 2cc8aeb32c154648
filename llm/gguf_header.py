"""The head of a GGUF file: what its model is like and how large it is, no weight read.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the types' numbers and sizes are
those of ggml.h and of the gguf package's `GGML_QUANT_SIZES`.
"""

from __future__ import annotations

import math
import os
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from llm.model_files import open_file

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = 32
# The most that is believed; more is a file that says nonsense.
_MAX_COUNT = 1_000_000
_MAX_NAME_BYTES = 65_536
_MAX_DIMENSIONS = 8
_MAX_VALUE = 1 << 31  # of an architecture
_MAX_TEXTS = 10_000_000  # of a list, such as a tokenizer's words
_MAX_HEAD_BYTES = 1 << 28

_SCALARS = {
    **{0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f"},
    **{7: "<?", 10: "<Q", 11: "<q", 12: "<d"},
}
_STRING, _ARRAY = 8, 9

# Number: name, weights a block, bytes a block.
_TYPES = {
    **{0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20)},
    **{6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40)},
    **{10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144)},
    **{13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292)},
    **{16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98)},
    **{19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110)},
    **{22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2)},
    **{26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56)},
    **{30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17)},
}

Scalar = int | float | bool | str


class GgufDamagedError(ValueError):
    """It isn't a GGUF file of a version that is known, or it was cut short."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One array of weights.

    Args:
        shape: as the file has it: of a matrix the columns first.
        kind: its type, such as `Q4_K`; empty if unknown.
    """

    shape: tuple[int, ...]
    kind: str

    @property
    def weights(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What stands before the weights.

    Args:
        values: the metadata that are single values; lists are left out.
        tensors: by their names.
        kind: the type in which most of the bytes are kept, such as `Q4_K`; empty if unknown.
    """

    values: Mapping[str, Scalar]
    tensors: Mapping[str, Tensor]
    kind: str

    def of_architecture(self, name: str) -> int | None:
        """A whole number that the architecture names for itself: `llama.block_count`."""
        value = self.values.get(f"{self.values.get('general.architecture')}.{name}")
        return value if isinstance(value, int) and 0 < value <= _MAX_VALUE else None


def read_gguf_header(path: Path) -> GgufHeader:
    """Read the head, and look whether the file is as long as it says.

    Raises:
        GgufDamagedError: it can't be read as one, or is shorter.
        OSError: it can't be read.
        ValueError: nor ever will: it is no regular file.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            return _read(file, size)
        except (struct.error, UnicodeDecodeError, OverflowError, MemoryError) as error:
            raise GgufDamagedError(str(path)) from error


def _read(file: BinaryIO, size: int) -> GgufHeader:
    if _bytes(file, 4) != _MAGIC or _number(file, "<I") not in _VERSIONS:
        raise GgufDamagedError
    count, entries = _count(file), _count(file)
    values: dict[str, Scalar] = {}
    for _ in range(entries):
        if file.tell() > _MAX_HEAD_BYTES:
            raise GgufDamagedError
        name = _text(file)
        value = _value(file, int(_number(file, "<I")))
        if value is not None:
            values[name] = value
    tensors: dict[str, Tensor] = {}
    stored: Counter[str] = Counter()
    end = 0
    for _ in range(count):
        name = _text(file)
        dimensions = int(_number(file, "<I"))
        if dimensions > _MAX_DIMENSIONS:
            raise GgufDamagedError
        shape = tuple(int(_number(file, "<Q")) for _ in range(dimensions))
        kind, offset = int(_number(file, "<I")), int(_number(file, "<Q"))
        called, block, block_bytes = _TYPES.get(kind, ("", 1, 0))
        tensors[name] = tensor = Tensor(shape, called)
        length = tensor.weights // block * block_bytes
        # No type packs more than eight weights into a byte; of one that isn't known that is all.
        if tensor.weights > 8 * size:
            raise GgufDamagedError
        stored[called] += length
        end = max(end, offset + length)
    alignment = values.get("general.alignment", _ALIGNMENT)
    step = alignment if isinstance(alignment, int) and alignment > 0 else _ALIGNMENT
    begin = -(-file.tell() // step) * step
    # Summed up too: else the same bytes could be told of a thousand times.
    if not tensors or begin + max(end, stored.total()) > size:
        raise GgufDamagedError
    return GgufHeader(values, tensors, stored.most_common(1)[0][0])


def _bytes(file: BinaryIO, length: int) -> bytes:
    read = file.read(length)
    if len(read) != length:
        raise GgufDamagedError
    return read


def _number(file: BinaryIO, form: str) -> int | float:
    (number,) = struct.unpack(form, _bytes(file, struct.calcsize(form)))
    assert isinstance(number, int | float)
    return number


def _count(file: BinaryIO) -> int:
    count = int(_number(file, "<Q"))
    if count > _MAX_COUNT:
        raise GgufDamagedError
    return count


def _text(file: BinaryIO) -> str:
    length = int(_number(file, "<Q"))
    if length > _MAX_NAME_BYTES:
        raise GgufDamagedError
    return _bytes(file, length).decode("utf-8")


def _value(file: BinaryIO, kind: int) -> Scalar | None:
    """The value at this place; None for a list, which is passed over."""
    if kind in _SCALARS:
        return _number(file, _SCALARS[kind])
    if kind == _STRING:
        length = int(_number(file, "<Q"))
        if length > _MAX_NAME_BYTES:  # a very long chat template, say
            file.seek(length, os.SEEK_CUR)
            return ""
        return _bytes(file, length).decode("utf-8", "replace")
    if kind != _ARRAY:
        raise GgufDamagedError
    of, length = int(_number(file, "<I")), int(_number(file, "<Q"))
    if of in _SCALARS:
        file.seek(length * struct.calcsize(_SCALARS[of]), os.SEEK_CUR)
    elif of == _STRING and length <= _MAX_TEXTS:
        for _ in range(length):
            file.seek(struct.unpack("<Q", _bytes(file, 8))[0], os.SEEK_CUR)
    else:
        raise GgufDamagedError
    return None
