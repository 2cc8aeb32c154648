"""The pairs of questions: what a line of the files says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).parent
DEV = FOLDER / "pairs.dev.jsonl"
HELD_OUT = FOLDER / "pairs.held_out.jsonl"
FILES = {"dev": DEV, "held_out": HELD_OUT}

DIFFERENT = (
    "negation",
    "number",
    "unit",
    "entity",
    "direction",
    "tense_time",
    "scope",
    "question_word",
    "modality",
    "language",
    "code",
    "roles",
    "comparison",
    "format",
    "quoted_text",
    "audience",
    "unrelated",
)
SAME = (
    "politeness",
    "framing",
    "word_order",
    "contraction",
    "spelling",
    "synonym",
    "voice",
    "question_command",
    "abbreviation",
    "width",
)

Lang = Literal["en", "zh", "mixed"]
LANGS: tuple[Lang, ...] = ("en", "zh", "mixed")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_LATIN_WORD = re.compile(r"[A-Za-z\uff21-\uff3a\uff41-\uff5a]{2,}")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions, and whether the answer to the one is the answer to the other.

    Args:
        id: "q" and a number, in the order of writing.
        lang: `mixed` where the two hold Chinese characters and a Latin word.
        kind: one of `SAME` or of `DIFFERENT`: in what the two differ.
    """

    id: str
    lang: Lang
    kind: str
    a: str
    b: str
    same: bool


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file, in its order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Pair(**json.loads(line)) for line in lines]


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """A line of JSON a pair, in place of what the file held."""
    lines = [json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in pairs]
    path.write_text("".join(lines), encoding="utf-8")


def lang_of(a: str, b: str) -> Lang:
    """The language of a pair."""
    both = f"{a}\n{b}"
    if not _CHINESE.search(both):
        return "en"
    return "mixed" if _LATIN_WORD.search(both) else "zh"
