"""What lies where a model's files should be."""

from __future__ import annotations

import json
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from llm.model_files import NotReadableError, read_json
from llm.safetensors_header import read_safetensors_header
from tests.local_answers import TIMEOUT_S


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def refused(read: Any, path: Path) -> None:
    """Whoever opens a pipe waits for its writer; then this one would wait on a thread of its own."""
    pool = ThreadPoolExecutor(1)
    try:
        with pytest.raises(NotReadableError):
            pool.submit(read, path).result(TIMEOUT_S)
    finally:
        if path.is_fifo():
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))  # lets go whoever waits
        pool.shutdown(wait=False)


@pytest.mark.parametrize("put", [pipe, endless, Path.mkdir])
@pytest.mark.parametrize("read", [read_json, read_safetensors_header])
def test_only_regular_files_are_read(put: Any, read: Any, tmp_path: Path) -> None:
    put(tmp_path / "file")
    refused(read, tmp_path / "file")


@pytest.mark.parametrize(
    "text", [b"{", b"[" * 100_000, b"\xff\xfe", b"1" * 5000, b" " * (17 << 20), b"\x00" * 9]
)
def test_what_is_no_json_or_too_much_of_it_is_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(text)
    refused(read_json, tmp_path / "file")


def test_a_file_that_is_not_there_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "file")


def one(**told: object) -> dict[str, object]:
    return {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **told}}


@pytest.mark.parametrize(
    "head",
    [
        one(shape=[10**400, 2]),
        one(shape=[3]),
        one(shape=[1]),
        one(shape=[-1, -2]),
        one(shape=[2.0]),
        one(shape=[True, 2]),
        one(shape=[1] * 50 + [2]),
        one(shape=2),
        one(dtype="F31"),
        one(dtype=["F32"]),
        one(data_offsets=[8, 0]),
        one(data_offsets=[0]),
        one(data_offsets=[0, 10**400]),
        one(data_offsets=[4, 12]),
        {"w": 5},
        {"w": None},
        {**one(), "v": one()["w"]},
        [],
    ],
    ids=repr,
)
def test_a_safetensors_head_that_says_what_cannot_be_is_refused(
    head: object, tmp_path: Path
) -> None:
    text = json.dumps(head).encode()
    (tmp_path / "file").write_bytes(struct.pack("<Q", len(text)) + text + bytes(12))
    refused(read_safetensors_header, tmp_path / "file")


def test_tensors_are_told_as_they_lie_there(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    saved = {
        "a": torch.zeros(3, 5),
        "b": torch.zeros(4, dtype=torch.bfloat16),
        "c": torch.zeros(()),
    }
    save_file(saved | {"d": torch.zeros(0, 7)}, tmp_path / "file", {"format": "pt"})
    told = {
        t.name: (t.shape, t.weights, t.length_bytes)
        for t in read_safetensors_header(tmp_path / "file")
    }
    assert told == {
        "a": ((3, 5), 15, 60),
        "b": ((4,), 4, 8),
        "c": ((), 1, 4),
        "d": ((0, 7), 0, 0),
    }
