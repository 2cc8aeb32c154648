"""Adds pairs to the set: numbers them, and lets chance say which of the two files each goes to.

python -m benchmarks.cache.add < new.jsonl    # lines of {"kind": …, "a": …, "b": …}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.cache.pairs import (
    DEV,
    DIFFERENT,
    HELD_OUT,
    SAME,
    Pair,
    lang_of,
    read_pairs,
    split,
    write_pairs,
)


def add(lines: Iterable[str], dev: Path = DEV, held_out: Path = HELD_OUT) -> int:
    """Add them after those that are there, none of which moves; says how many.

    Raises:
        ValueError: a kind that is none, or a text that is in the set already. Nothing is added.
    """
    pairs = sorted(read_pairs(dev) + read_pairs(held_out), key=lambda pair: pair.id)
    known = {text for pair in pairs for text in (pair.a, pair.b)}
    before = len(pairs)
    for new in map(json.loads, filter(str.strip, lines)):
        kind, a, b = new["kind"], new["a"].strip(), new["b"].strip()
        if kind not in SAME + DIFFERENT:
            raise ValueError(f"{kind!r} is none of the kinds.")
        for text in (a, b):
            if text in known:
                raise ValueError(f"This text is there already: {text}")
            known.add(text)
        pairs.append(Pair(f"q{len(pairs) + 1:04}", lang_of(a, b), kind, a, b, kind in SAME))
    placed = list(split(pairs))
    write_pairs(dev, (pair for pair, out in placed if not out))
    write_pairs(held_out, (pair for pair, out in placed if out))
    return len(pairs) - before


if __name__ == "__main__":
    try:
        print(f"{add(sys.stdin)} pairs added.")
    except ValueError as wrong:
        sys.exit(str(wrong))
