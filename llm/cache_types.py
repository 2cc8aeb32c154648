"""What an answer cache keeps, and the protocol of what keeps it.

Frozen values and one protocol; imports nothing heavy and knows no vendor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from llm.types import Delta, Usage

SHARED = "shared"
"""The scope of what all users of a deployment may be given. A person's own scope never is this."""


@dataclass(frozen=True, slots=True)
class CacheKey:
    """All that decides whether two questions may have the same answer.

    Args:
        digest: of everything, the last user message in its very characters too; hexadecimal.
        partition: of everything apart from the last user message: similar questions are looked
            for only within it; hexadecimal.
        scope: whose answers: `SHARED`, or what stands for one person.
    """

    digest: str
    partition: str
    scope: str


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer that finished by itself, with all that its receipt tells.

    Args:
        key: what it answers.
        question: the last user message.
        pieces: the answer as it arrived.
        usage: the tokens it took.
        model: the model's name as a person would say it.
        server: who was asked, where the backend has several.
        created_s: when it was finished, seconds since 1970.
        expires_s: from when on it is not given any more, seconds since 1970.
        took_s: seconds from the slot to the end; what a hit saves.
    """

    key: CacheKey
    question: str
    pieces: tuple[Delta, ...]
    usage: Usage
    model: str
    server: str
    created_s: float
    expires_s: float
    took_s: float

    @property
    def text(self) -> str:
        """The answer without its reasoning."""
        told: list[str] = []
        for piece in self.pieces:
            if piece.kind == "recast":
                told.clear()  # it was reasoning
            elif piece.kind == "text":
                told.append(piece.text)
        return "".join(told)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """What a list shows of a kept answer.

    Args:
        opening: the answer's first characters.
        chars: the answer's length.
        size: bytes it takes in the store.
        used_s: when it was given last, or kept; seconds since 1970.
        hits: how often it was given.
    """

    key: CacheKey
    question: str
    opening: str
    chars: int
    size: int
    model: str
    server: str
    created_s: float
    expires_s: float
    used_s: float
    hits: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that may be similar.

    Args:
        vector: its embedding, float32 in the machine's order, of length 1; empty where it has
            none.
        embedding: which model made the vector, or couldn't read the question; those of different
            models aren't compared. Empty where none has looked at it.
    """

    digest: str
    question: str
    vector: bytes
    embedding: str


@dataclass(frozen=True, slots=True)
class Rejection:
    """A match that a person called wrong: around this vector more likeness is wanted.

    Args:
        vector: that of the question whose answer was wrongly given.
        similarity: of the two questions, -1 to 1.
    """

    vector: bytes
    embedding: str
    similarity: float
    at_s: float


DecisionKind = Literal["exact", "similar", "miss", "refused", "near"]


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of the log that shows what the cache did and why.

    Args:
        kind: a hit, a miss (nothing there), `refused` (this question is never served), or `near`:
            something similar was there, and doubt refused it.
        reason: why it was refused, by a fixed name; empty where nothing was.
        question: what was asked.
        other: the similar question; empty where there was none.
        similarity: -1 to 1; None where none was computed.
        digest: the entry that was given or nearly given; empty where there was none.
        saved_tokens, saved_s: what a hit saved.
        judged: what a person said of it since: None nothing, True the same, False not the same.
    """

    decision_id: str
    scope: str
    at_s: float
    kind: DecisionKind
    reason: str = ""
    question: str = ""
    other: str = ""
    similarity: float | None = None
    digest: str = ""
    model: str = ""
    saved_tokens: int = 0
    saved_s: float = 0.0
    judged: bool | None = None


@dataclass(frozen=True, slots=True)
class DecisionCount:
    """How many of a scope's decisions are of this kind, for this reason and by this model, and
    what they saved together."""

    kind: str
    reason: str
    model: str
    number: int
    saved_tokens: int
    saved_s: float


@dataclass(frozen=True, slots=True)
class CacheTotals:
    """What a scope's entries come to."""

    entries: int
    size: int


REJECTIONS_KEPT = 1_000
REJECTIONS_KEPT_S = 365 * 86_400.0
DECISIONS_KEPT = 10_000
DECISIONS_KEPT_S = 90 * 86_400.0
CLEARING_KEPT_S = 86_400.0
"""How long it is known when something was cleared: no answer takes longer to be made."""


CLOCK_AHEAD_S = 300.0
"""How far another process's clock may be ahead: minutes, not hours. What was made or given later than that is from a
clock that was wrong: it isn't given, for nobody knows how old it is, and leaves with the next
answer that is kept."""


class CacheStoreError(Exception):
    """The store didn't do it: down, slow, full or damaged. To the cache that is a miss.

    Its text is for the log: no question, no address, no password.
    """


class CacheFullError(CacheStoreError):
    """Its disk has no room left."""


class CacheBusyError(CacheStoreError):
    """It had no time for it now, which says nothing of the next."""


class AnswerStore(Protocol):
    """Keeps answers, the vectors of their questions, rejections and the log of decisions.

    Every method raises `CacheStoreError` and nothing else, within about 50 ms where the store is
    slow or down. Thread-safety: every method may be called from any thread, and several processes
    may use one store at once.

    What isn't of the scope that a method is given is to it as if it weren't there, whatever
    digest, partition or id comes with it. A digest or partition that can't be one (not hexadecimal,
    over 128 characters), and a scope that is empty or over 255 characters, holds nothing, and
    nothing can be kept under it.
    """

    def get(self, digest: str, scope: str, now_s: float) -> CachedAnswer | None:
        """The answer of that digest and that scope; None where there is none, it expired, or it was
        made or given by a clock that was ahead (`CLOCK_AHEAD_S`).

        What can't be read any more is taken for not there.
        """
        ...

    def put(
        self,
        answer: CachedAnswer,
        vector: bytes = b"",
        embedding: str = "",
        *,
        begun_s: float | None = None,
    ) -> None:
        """Keep it, in place of what has its digest and scope; then forget the least recently used
        over the size cap, whosever they are. One that alone is over the cap isn't kept, and
        neither is one that the model began with before its like was cleared (`clear`).

        Args:
            begun_s: when the model began with it, seconds since 1970; None where that was when it
                was finished.
        """
        ...

    def embed(self, partition: str, scope: str, candidate: Candidate) -> None:
        """Give a kept answer's question its vector, or note that this model can't read it.

        Nothing where the answer isn't there any more. It may take more room than the cap has until
        the next answer is kept.
        """
        ...

    def used(self, digest: str, scope: str, now_s: float) -> None:
        """Note that it was given once more."""
        ...

    def delete(self, digest: str, scope: str) -> bool:
        """Forget one answer of this scope; says whether it was there."""
        ...

    def candidates(self, partition: str, scope: str, now_s: float) -> Sequence[Candidate]:
        """The questions of that partition and scope that can be given, newest first, those without
        a vector too."""
        ...

    def reject(self, partition: str, scope: str, rejection: Rejection) -> None:
        """Keep a rejection; the newest 1,000 of a partition and scope, for a year."""
        ...

    def rejections(self, partition: str, scope: str) -> Sequence[Rejection]:
        """The rejections of that partition and scope, newest first."""
        ...

    def entries(
        self, scope: str, now_s: float, limit: int, skip: int = 0, text: str = ""
    ) -> Sequence[CacheEntry]:
        """The scope's entries that can be given, last used first; only those that have the text in
        their question.

        Upper and lower case are the same; no character of it stands for another.
        """
        ...

    def totals(self, scope: str, now_s: float) -> CacheTotals:
        """How many entries a scope has that can be given, and their size."""
        ...

    def clear(
        self,
        scope: str,
        now_s: float,
        *,
        model: str | None = None,
        before_s: float | None = None,
    ) -> int:
        """Forget the scope's entries, or those of one model, or those made before then.

        Answers that a model is still busy with count as well: where it began before `now_s`, and
        before `before_s` where that is given, they aren't kept once they are whole, in whichever
        process. Clocks of different machines should agree.

        Returns how many there were. Without `model` and `before_s` the scope's rejections and
        decisions go too.
        """
        ...

    def note(self, decision: Decision) -> None:
        """Add to the log: the newest 10,000 of a scope are kept, for 90 days, with the first 2,000
        characters of each question. One with an id that is there already takes its place."""
        ...

    def decisions(self, scope: str, limit: int = DECISIONS_KEPT) -> Sequence[Decision]:
        """The scope's log, newest first."""
        ...

    def counts(self, scope: str) -> Sequence[DecisionCount]:
        """What the scope's log comes to, in any order; much quicker than reading it."""
        ...

    def near(self, scope: str, limit: int) -> Sequence[Decision]:
        """The decisions of kind `near` of which nobody has said anything, newest first."""
        ...

    def judge(self, decision_id: str, scope: str, same: bool) -> None:
        """Note what a person said of a decision."""
        ...

    def together(self, writes: Sequence[Callable[[AnswerStore], object]]) -> None:
        """Do several writes in their order, quicker than one by one.

        Each is called here and on this thread, with this store, and may call `put`, `embed`,
        `used`, `delete`, `reject`, `note` and `judge`, of whose results nothing is known. Where
        one fails it isn't known which of them are done.
        """
        ...

    def close(self) -> None:
        """Free everything. The store is not used again."""
        ...
