"""Adds pairs to one of the two files: numbers them after all that are there.

python -m benchmarks.cache.add dev < new.jsonl    # lines of {"kind": …, "a": …, "b": …}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.cache.pairs import (
    DIFFERENT,
    FILES,
    SAME,
    Pair,
    lang_of,
    read_pairs,
    write_pairs,
)


def add(lines: Iterable[str], to: Path, files: Iterable[Path] = tuple(FILES.values())) -> int:
    """Add them at the end of `to`, one of `files`; says how many.

    Raises:
        ValueError: a kind that is none, or a text that is in a file already. Nothing is added.
    """
    there = {path: read_pairs(path) for path in files}
    pairs = [pair for some in there.values() for pair in some]
    known = {text for pair in pairs for text in (pair.a, pair.b)}
    added: list[Pair] = []
    for new in map(json.loads, filter(str.strip, lines)):
        kind, a, b = new["kind"], new["a"].strip(), new["b"].strip()
        if kind not in SAME + DIFFERENT:
            raise ValueError(f"{kind!r} is none of the kinds.")
        for text in (a, b):
            if text in known:
                raise ValueError(f"This text is there already: {text}")
            known.add(text)
        number = len(pairs) + len(added) + 1
        added.append(Pair(f"q{number:04}", lang_of(a, b), kind, a, b, kind in SAME))
    write_pairs(to, there[to] + added)
    return len(added)


if __name__ == "__main__":
    if sys.argv[1:] not in ([name] for name in FILES):
        sys.exit(f"Say which file they go to: {' or '.join(FILES)}.")
    try:
        print(f"{add(sys.stdin, FILES[sys.argv[1]])} pairs added.")
    except ValueError as wrong:
        sys.exit(str(wrong))
