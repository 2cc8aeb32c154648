"""Heads of GGUF files that say what can't be."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from llm.gguf_header import GgufDamagedError, read_gguf_header

F32, UNKNOWN = 0, 99
WEIGHTS_BYTES = 64


def head(values: list[bytes], tensors: list[tuple[tuple[int, ...], int]]) -> bytes:
    written = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)) + b"".join(values)
    for number, (shape, kind) in enumerate(tensors):
        told = struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, 0)
        written += text(f"t{number}") + told
    return written + bytes(-len(written) % 32 + WEIGHTS_BYTES)


def text(words: str) -> bytes:
    return struct.pack("<Q", len(words)) + words.encode()


def whole(name: str, value: int) -> bytes:
    return text(name) + struct.pack("<IQ", 10, value)


def texts(name: str, length: int) -> bytes:
    return text(name) + struct.pack("<IIQ", 9, 8, length)


def test_a_small_head_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(head([whole("general.x", 7)], [((4, 4), F32)]))
    told = read_gguf_header(tmp_path / "a.gguf")
    assert told.values == {"general.x": 7}
    assert told.tensors["t0"].weights == 16


@pytest.mark.parametrize(
    "written",
    [
        head([], [((4, 4), F32), ((4, 4), F32)]),  # the same bytes twice
        head([], [((1 << 60,) * 8, UNKNOWN)]),
        head([], [((1 << 60,) * 8, F32)]),
        head([texts("tokenizer.ggml.tokens", 1 << 40)], [((4, 4), F32)]),
    ],
    ids=["overlap", "unknown type", "large", "long list"],
)
def test_what_cannot_be_is_refused(written: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(written)
    with pytest.raises(GgufDamagedError):
        read_gguf_header(tmp_path / "a.gguf")


def test_a_list_longer_than_any_is_not_counted_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(head([texts("tokens", 1 << 40)], []))
    os.truncate(tmp_path / "a.gguf", 1 << 40)  # of zeros, each eight an empty text; no disk is used
    with pytest.raises(GgufDamagedError):
        read_gguf_header(tmp_path / "a.gguf")


def test_a_number_that_no_architecture_has_is_not_believed(tmp_path: Path) -> None:
    named = text("general.architecture") + struct.pack("<I", 8) + text("llama")
    values = [named, whole("llama.block_count", 1 << 62), whole("llama.context_length", 512)]
    (tmp_path / "a.gguf").write_bytes(head(values, [((4, 4), F32)]))
    told = read_gguf_header(tmp_path / "a.gguf")
    assert told.of_architecture("block_count") is None
    assert told.of_architecture("context_length") == 512
