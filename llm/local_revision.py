"""What identifies the weights of a local model: the hub's commit, or a hash of its files."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import BinaryIO

from llm.models import ModelSpec

WHOLE_BYTES = 32 << 20
"""Files up to this size are hashed whole: configurations, tokenizers, templates, tiny weights."""

END_BYTES = 1 << 20
"""Of larger ones so much at either end, with their size and the time of their last change.

A model of many gigabytes may not be read once more at each start. A safetensors file begins with
the names, types and places of all its tensors, and training changes every tensor, so other weights
differ at the ends; whoever changes a few numbers in the middle changes the time. A copy that has
another time counts as another model: an answer is then asked for again, and none is wrong.
"""

_READ = frozenset({".json", ".jinja", ".model", ".safetensors", ".tiktoken", ".txt"})
# Says where a conversion came from and nothing of what it answers.
_UNREAD = frozenset({"source.json"})
_COMMIT = re.compile(r"[0-9a-f]{40}")


def revision_of(spec: ModelSpec, folder: Path, *, remote_code: bool = False) -> str:
    """What identifies the weights, the tokenizer and all else that is loaded from `folder`.

    Reads some megabytes. A GGUF file, the embedded one too, goes by what was made of it: that is
    what is loaded.

    Args:
        folder: what `obtain` gave for `spec`.
        remote_code: the model may run code that lies there, wherever in it.

    Raises:
        OSError: a file can't be read.
    """
    if spec.kind == "hub" and folder.parent.name == "snapshots" and _COMMIT.fullmatch(folder.name):
        return folder.name
    found = {path for path in folder.iterdir() if path.suffix in _READ}
    if remote_code:
        found.update(folder.rglob("*.py"))
    digest = hashlib.sha256()
    for path in sorted(found):
        if path.name not in _UNREAD and path.is_file():
            head = json.dumps([path.relative_to(folder).as_posix(), *_told(path)])
            digest.update(head.encode() + b"\n")
    return digest.hexdigest()


def _told(path: Path) -> tuple[str | int, ...]:
    with path.open("rb") as file:
        # Of the open file: the name may come to mean another one meanwhile.
        stat = os.fstat(file.fileno())
        if stat.st_size <= WHOLE_BYTES:
            return (hashlib.file_digest(file, "sha256").hexdigest(),)
        return (stat.st_size, stat.st_mtime_ns, _ends(file, stat.st_size))


def _ends(file: BinaryIO, size: int) -> str:
    digest = hashlib.sha256(file.read(END_BYTES))
    file.seek(size - END_BYTES)
    digest.update(file.read(END_BYTES))
    return digest.hexdigest()
