"""Which questions of a partition are near a new one: one product of a matrix and a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llm.cache_types import Candidate, Rejection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

REJECTION_MARGIN = 0.02
"""By how much a likeness has to exceed one that a person rejected nearby."""
NEAR_REJECTION = 0.9
"""A question is near a rejected one where the two are at least as like as this."""

MOST_CANDIDATES = 10_000
"""With 384 numbers each they take about 10 ms, on one busy core 16."""


@dataclass(frozen=True, slots=True)
class Similar:
    """A candidate, and how like the question it is: the cosine, -1 to 1."""

    candidate: Candidate
    similarity: float


def best(
    question: Vector,
    embedding: str,
    candidates: Sequence[Candidate],
    rejections: Sequence[Rejection],
    threshold: float,
    limit: int = 8,
) -> list[Similar]:
    """The candidates that are like enough, the likest first.

    Only those of the same embedding are looked at; a vector of another length, or one that isn't
    of numbers, is passed over. Near a rejection the threshold rises: where the question is at
    least `NEAR_REJECTION` like a rejected one, or as like as the match that was rejected, the
    likeness has to exceed that match's by `REJECTION_MARGIN`.

    Time grows with the candidates, so no more than `MOST_CANDIDATES` are looked at, the first ones:
    a caller that may have more gives the newest first.

    Args:
        question: float32, shape (d,), of length 1.
        embedding: which model made it.
        threshold: the least likeness, of those that no rejection is near.
        limit: how many are returned at most: `same_question` looks at each.
    """
    import numpy as np

    fitting = [
        each for each in candidates[:MOST_CANDIDATES] if _fits(each, embedding, question.nbytes)
    ]
    if not fitting:
        return []
    least = raised(question, embedding, rejections, threshold)
    likeness = _likeness([each.vector for each in fitting], question)  # (n,)
    at_least = np.flatnonzero(likeness >= least)  # NaN is not
    order = at_least[np.argsort(-likeness[at_least], kind="stable")][:limit]
    return [Similar(fitting[place], float(likeness[place])) for place in order]


def raised(
    question: Vector, embedding: str, rejections: Sequence[Rejection], threshold: float
) -> float:
    """The threshold that counts for this question; over 1 where nothing can reach it."""
    import numpy as np

    fitting = [each for each in rejections if _fits(each, embedding, question.nbytes)]
    if not fitting:
        return threshold
    nearness = _likeness([each.vector for each in fitting], question)
    rejected = np.array([each.similarity for each in fitting], dtype=np.float32)
    near = rejected[nearness >= np.minimum(NEAR_REJECTION, rejected)]
    return max(threshold, float(near.max()) + REJECTION_MARGIN) if len(near) else threshold


def _fits(each: Candidate | Rejection, embedding: str, size: int) -> bool:
    return each.embedding == embedding and len(each.vector) == size


def _likeness(vectors: Sequence[bytes], question: Vector) -> Vector:
    """The cosines of all at once. Vectors are rows (n, d), float32 in the machine's order.

    By einsum and not by BLAS, whose threads wait for each other: beside a model that keeps the
    cores busy 3,000 rows took 20 ms with them, and 0.2 ms by einsum on this thread alone.
    """
    import numpy as np

    rows = np.frombuffer(b"".join(vectors), dtype=np.float32).reshape(len(vectors), -1)
    likeness: Vector = np.einsum("nd,d->n", rows, question)
    return likeness
