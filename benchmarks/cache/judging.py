"""What a judge says of the pairs, and how alike the embedding finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.cache.pairs import Pair


class Embedder(Protocol):
    """As much of an embedding as is asked for here."""

    def embed(self, texts: Sequence[str]) -> Any:
        """float32 (n, d), each row of unit length."""
        ...

    def reads(self, text: str) -> bool:
        """Whether the text is in a language it was made for."""
        ...


class Verdict(Protocol):
    """As much of a verdict as is asked for here."""

    @property
    def same(self) -> bool: ...

    @property
    def reason(self) -> str: ...


Judge = Callable[[str, str], Verdict]


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair, and what was made of it.

    Args:
        hit: the judge would give the answer to the one question to the other.
        reason: the judge's.
        similarity: of the embeddings, -1 to 1; None without an embedding.
        read: the embedding was made for the language of both.
    """

    pair: Pair
    hit: bool
    reason: str
    similarity: float | None = None
    read: bool = False

    @property
    def wrong(self) -> bool:
        """The answer was given, and doesn't fit."""
        return self.hit and not self.pair.same

    @property
    def missed(self) -> bool:
        """The answer fits, and wasn't given."""
        return self.pair.same and not self.hit


def judge_pairs(pairs: Sequence[Pair], judge: Judge, embedder: Embedder | None) -> list[Judged]:
    """Ask the judge of every pair, both ways round.

    A hit counts in either order: which of the two questions was asked first is chance.
    """
    judged = []
    likeness = similarities(pairs, embedder) if embedder else [None] * len(pairs)
    for pair, similarity in zip(pairs, likeness, strict=True):
        verdicts = judge(pair.a, pair.b), judge(pair.b, pair.a)
        hit = any(v.same for v in verdicts) if not pair.same else all(v.same for v in verdicts)
        reason = next(v.reason for v in verdicts if v.same == hit)
        read = embedder is not None and embedder.reads(pair.a) and embedder.reads(pair.b)
        judged.append(Judged(pair, hit, reason, similarity, read))
    return judged


def similarities(pairs: Sequence[Pair], embedder: Embedder) -> list[float]:
    """The cosine of each pair's embeddings, read or not."""
    a = np.asarray(embedder.embed([pair.a for pair in pairs]))
    b = np.asarray(embedder.embed([pair.b for pair in pairs]))
    return [float(cosine) for cosine in (a * b).sum(axis=1)]


def auc(judged: Iterable[Judged]) -> float | None:
    """How likely a paraphrase is more alike than a pair that differs; 0.5 is chance.

    Pairs of the kind `unrelated` are left out: any embedding tells those apart.
    None where there is no similarity, or nothing to compare.
    """
    same, different = [], []
    for one in judged:
        if one.similarity is not None and one.pair.kind != "unrelated":
            (same if one.pair.same else different).append(one.similarity)
    if not same or not different:
        return None
    gaps = np.subtract.outer(np.array(same), np.array(different))
    return float((gaps > 0).mean() + (gaps == 0).mean() / 2)
