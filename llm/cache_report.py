"""What a cache's decisions come to, and the same as a file for tuning."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from llm.cache_types import Decision, DecisionCount


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What became of the questions.

    Args:
        questions: how many there were; a near match that was refused is a miss among them.
        fresh: the model was asked on purpose.
        reasons: why they weren't served, most often first, with their number.
        miss_reasons: the same of those that missed for a known reason.
        saved_tokens: tokens that no model had to decode.
        saved_s: seconds in which they once were.
        models: those that any of them is about, by name.
    """

    questions: int
    exact: int
    similar: int
    missed: int
    fresh: int
    refused: int
    reasons: Mapping[str, int]
    miss_reasons: Mapping[str, int]
    saved_tokens: int
    saved_s: float
    models: frozenset[str]

    def share(self, count: int) -> float:
        """Of all questions, 0 to 1."""
        return count / self.questions if self.questions else 0.0


def report(counts: Sequence[DecisionCount]) -> CacheReport:
    """Add them up."""
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    misses: Counter[str] = Counter()
    for each in counts:
        kinds[each.kind] += each.number
        if each.kind == "refused":
            reasons[each.reason] += each.number
        elif each.kind == "miss":
            misses[each.reason] += each.number
    return CacheReport(
        questions=kinds["exact"] + kinds["similar"] + kinds["miss"] + kinds["refused"],
        exact=kinds["exact"],
        similar=kinds["similar"],
        missed=kinds["miss"] - misses["fresh"],
        fresh=misses["fresh"],
        refused=kinds["refused"],
        reasons=dict(reasons.most_common()),
        miss_reasons={
            name: count for name, count in misses.most_common() if name not in ("", "fresh")
        },
        saved_tokens=sum(each.saved_tokens for each in counts),
        saved_s=sum(each.saved_s for each in counts),
        models=frozenset(each.model for each in counts if each.model),
    )


def log_file(decisions: Sequence[Decision]) -> bytes:
    """One decision a line as JSON, newest first; whose they are isn't in it."""
    lines = []
    for decision in decisions:
        values = asdict(decision)
        del values["scope"]
        lines.append(json.dumps(values, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines).encode()
