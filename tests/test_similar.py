"""Which of many questions are near one, and what a rejection does to it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from llm.cache_types import Candidate, Rejection
from llm.similar import MOST_CANDIDATES, REJECTION_MARGIN, best

MODEL = "model@1"


def at(degrees: float, size: int = 2) -> NDArray[np.float32]:
    """A vector of length 1, so far turned from `at(0)`."""
    vector = np.zeros(size, dtype=np.float32)
    vector[:2] = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return vector


def candidate(degrees: float, embedding: str = MODEL, size: int = 2) -> Candidate:
    return Candidate(f"d{degrees:g}", f"at {degrees:g}", at(degrees, size).tobytes(), embedding)


def rejection(degrees: float, similarity: float, embedding: str = MODEL) -> Rejection:
    return Rejection(at(degrees).tobytes(), embedding, similarity, 0.0)


def found(*candidates: Candidate, threshold: float = 0.8, **more: object) -> list[str]:
    rejections = more.get("rejections", ())
    similar = best(at(0), MODEL, candidates, rejections, threshold)  # type: ignore[arg-type]
    return [each.candidate.digest for each in similar]


def test_the_likest_comes_first_and_what_is_not_like_enough_does_not() -> None:
    assert found(candidate(30), candidate(80), candidate(5), candidate(-20)) == [
        "d5",
        "d-20",
        "d30",
    ]


def test_the_likeness_is_the_cosine() -> None:
    (similar,) = best(at(0), MODEL, [candidate(60)], (), 0.4)
    assert similar.similarity == pytest.approx(0.5, abs=1e-6)


def test_a_likeness_of_just_the_threshold_is_enough() -> None:
    (exact,) = best(at(0), MODEL, [candidate(0)], (), 1.0)
    assert exact.similarity == 1.0


def test_nothing_to_compare_finds_nothing() -> None:
    assert found() == []
    assert found(candidate(90)) == []


def test_no_more_than_the_limit_are_returned() -> None:
    many = [candidate(degrees) for degrees in range(20)]
    assert [each.candidate.digest for each in best(at(0), MODEL, many, (), 0.1, limit=3)] == [
        "d0",
        "d1",
        "d2",
    ]


def test_vectors_of_another_model_or_length_are_passed_over() -> None:
    odd = Candidate("cut", "cut", at(0).tobytes()[:-1], MODEL)
    assert found(candidate(0, "model@2"), candidate(0, size=3), odd, candidate(10)) == ["d10"]


def test_a_vector_without_numbers_in_it_is_never_found() -> None:
    broken = Candidate("nan", "nan", np.full(2, np.nan, dtype=np.float32).tobytes(), MODEL)
    assert found(broken, candidate(10), threshold=-1.0) == ["d10"]


def test_near_a_rejection_more_likeness_is_wanted() -> None:
    like = float(np.cos(np.radians(20)))
    rejected = [rejection(0, like)]
    assert found(candidate(20), candidate(5)) == ["d5", "d20"]
    assert found(candidate(20), candidate(5), rejections=rejected) == ["d5"]
    just = np.degrees(np.arccos(like + REJECTION_MARGIN))
    assert found(candidate(just + 0.1), candidate(just - 0.1), rejections=rejected) == [
        f"d{just - 0.1:g}"
    ]


def test_far_from_a_rejection_nothing_changes() -> None:
    assert found(candidate(20), rejections=[rejection(60, 0.99)]) == ["d20"]


def test_where_the_very_same_was_rejected_nothing_is_found() -> None:
    assert found(candidate(0), rejections=[rejection(0, 1.0)]) == []


def test_the_highest_rejection_nearby_counts() -> None:
    rejected = [rejection(0, 0.85), rejection(5, 0.97)]
    assert found(candidate(10), candidate(15), candidate(1), rejections=rejected) == ["d1"]


def test_rejections_of_another_model_are_passed_over() -> None:
    assert found(candidate(20), rejections=[rejection(0, 0.99, "model@2")]) == ["d20"]


def test_past_the_most_candidates_the_first_are_looked_at() -> None:
    far = [candidate(90)] * (MOST_CANDIDATES - 1)
    assert found(*far, candidate(5), candidate(0)) == ["d5"]
