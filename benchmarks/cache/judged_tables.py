"""The judge's hits, as tables beside those that the similarity alone would give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from benchmarks.cache.judging import Judged, auc
from benchmarks.cache.pairs import DIFFERENT, LANGS, SAME
from benchmarks.table import align

THRESHOLDS = (0.80, 0.85, 0.90, 0.95)


def told(name: str, judged: Sequence[Judged]) -> str:
    """A file's tables, in Markdown."""
    wrong = sum(one.wrong for one in judged)
    paraphrases = sum(one.pair.same for one in judged)
    found = paraphrases - sum(one.missed for one in judged)
    return "\n\n".join(
        (
            f"## {name}: {wrong} wrong hits among {len(judged) - paraphrases} pairs that differ, "
            f"{found} of {paraphrases} paraphrases found",
            by_language(judged),
            by_kind(judged, same=False),
            by_kind(judged, same=True),
            by_reason(judged),
        )
    )


def shown(judged: Sequence[Judged]) -> str:
    """The pairs that were judged wrongly, the wrong hits first."""
    lines = []
    for head, some in (
        ("wrong hit", [one for one in judged if one.wrong]),
        ("not found", [one for one in judged if one.missed]),
    ):
        for one in some:
            pair = one.pair
            lines.append(f"{head} {pair.id} {pair.kind} ({one.reason})\n  {pair.a!r}\n  {pair.b!r}")
    return "\n".join(lines)


def by_language(judged: Sequence[Judged]) -> str:
    """A Markdown table: a line a language, the judge's hits beside those of the thresholds."""
    bars = _bars(judged)
    heads = [f"≥ {bar:.2f}" for bar in bars]
    lines = [["language", "wrong hits", *heads, "found", *heads, "AUC", "read"]]
    for lang in (*LANGS, "all"):
        some = [one for one in judged if lang in (one.pair.lang, "all")]
        area = auc(some)
        different = [one for one in some if not one.pair.same]
        same = [one for one in some if one.pair.same]
        hits = [_share(different), *_over(different, bars), _share(same), *_over(same, bars)]
        read = f"{sum(one.read for one in some)} of {len(some)}"
        lines.append([lang, *hits, *(("–", "–") if area is None else (f"{area:.2f}", read))])
    return align(lines)


def by_kind(judged: Sequence[Judged], same: bool) -> str:
    """A Markdown table: a line a kind, the judge's hits by language, then those of thresholds."""
    bars = _bars(judged)
    heads = [f"≥ {bar:.2f}" for bar in bars]
    lines = [["found" if same else "wrong hits", *LANGS, "all", *heads]]
    for kind in SAME if same else DIFFERENT:
        some = [one for one in judged if one.pair.kind == kind]
        parts = [_share([one for one in some if one.pair.lang == lang]) for lang in LANGS]
        lines.append([kind, *parts, _share(some), *_over(some, bars)])
    return align(lines)


def by_reason(judged: Sequence[Judged]) -> str:
    """A Markdown table: how often the judge gave which reason."""
    counts = Counter((one.reason, one.pair.same) for one in judged)
    lines = [["reason", "of different pairs", "of paraphrases"]]
    for reason in sorted({reason for reason, _ in counts}):
        lines.append([reason, str(counts[reason, False]), str(counts[reason, True])])
    return align(lines)


def _bars(judged: Sequence[Judged]) -> tuple[float, ...]:
    """The thresholds, where there is something to hold against them."""
    return THRESHOLDS if any(one.similarity is not None for one in judged) else ()


def _over(judged: Sequence[Judged], bars: Sequence[float]) -> list[str]:
    """How many each threshold would let through."""
    alike = [one.similarity for one in judged if one.similarity is not None]
    return [str(sum(similarity >= bar for similarity in alike)) for bar in bars]


def _share(judged: Sequence[Judged]) -> str:
    return f"{sum(one.hit for one in judged)} of {len(judged)}" if judged else "–"
