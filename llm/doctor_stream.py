"""Whether something on the way to a server holds the stream back, by when its pieces come.

A proxy that buffers gives the whole answer at once, or in a few bursts: then the page stands still
for as long as the model writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from llm.doctor import Finding
from llm.doctor_server import ServerLook
from llm.errors import Reason
from llm.types import Backend, CancelToken, Delta, GenerationRequest, Message, SamplingParams

PIECES = 30
"""Tokens that are asked for: enough to see gaps between, and cheap."""

HELD_S = 0.4
"""An answer that is written in less than this can't be held back so that anybody would see it."""

_FEWEST = 6
_A_BURST = 6
"""Pieces that come together on average where they are held back: several servers send each token by
itself, none waits for six."""
_QUESTION = "Write a long story about a lighthouse."
"""A small model ends no story early; what it is to count it does."""

Verdict = Literal["flows", "quick", "held", "short"]


@dataclass(frozen=True, slots=True)
class PieceTimes:
    """When an answer's pieces came.

    Args:
        seconds: of each piece, since the question was sent.
        chars: of the whole answer.
    """

    seconds: tuple[float, ...]
    chars: int


@dataclass(frozen=True, slots=True)
class Flow:
    """How an answer came.

    Args:
        bursts: in how many steps, as far as a person would tell them apart.
        written_s: how long the model took to write it, after the first token.
    """

    verdict: Verdict
    bursts: int
    written_s: float


def flow_of(came: PieceTimes, first_token_s: float) -> Flow:
    """Judge how an answer came.

    Where nothing holds it back, its pieces come evenly over the time that it takes to write them.

    Args:
        first_token_s: what an answer of a single token takes: reading the prompt, and the way.
    """
    pieces = len(came.seconds)
    written_s = came.seconds[-1] - first_token_s if pieces else 0.0
    if written_s < HELD_S:
        # Of a few words, too few to say anything of.
        verdict: Verdict = "quick" if pieces >= _FEWEST else "short"
        return Flow(verdict, pieces, written_s)
    apart_s = written_s / max(pieces, _FEWEST) / 4
    bursts = 1 + sum(later - sooner > apart_s for sooner, later in pairwise(came.seconds))
    if pieces < _FEWEST:
        # Some gateways take the pieces apart and send the whole as one.
        held = bursts == 1 and came.chars >= 2 * PIECES
        return Flow("held" if held else "short", bursts, written_s)
    return Flow("held" if bursts * _A_BURST <= pieces else "flows", bursts, written_s)


@dataclass(frozen=True)
class StreamCheck:
    """Asks a server for a short answer and looks at when it comes.

    Args:
        look: says whether it can be asked at all.
        backend: the one server, asked as any question is.
    """

    group: Reason
    look: ServerLook
    backend: Backend
    clock: Callable[[], float] = time.monotonic

    name = "doctor-check-stream"
    limit_s = 60.0

    def run(self, cancel: CancelToken) -> Finding:
        """As in `Check`.

        Raises:
            LLMError: the server gives no answer.
        """
        if (why := self.look.why_not()) is not None:
            return Finding("skipped", why)
        first = self._asked(1, cancel)
        first_token_s = first.seconds[-1] if first.seconds else 0.0
        flow = flow_of(self._asked(PIECES, cancel), first_token_s)
        if flow.verdict == "held":
            # It may have stood in line, and have been written at once then: but not twice.
            flow = flow_of(self._asked(PIECES, cancel), first_token_s)
        values: dict[str, int | float] = {
            "bursts": flow.bursts,
            "seconds": round(flow.written_s, 1),
            "first": round(1000 * first_token_s),
        }
        match flow.verdict:
            case "held":
                return Finding("warn", Reason("doctor-stream-held", values))
            case "short":
                return Finding("skipped", Reason("doctor-stream-short"))
            case "quick":
                return Finding("ok", Reason("doctor-stream-quick", values))
            case "flows":
                return Finding("ok", Reason("doctor-stream-flows", values))

    def _asked(self, tokens: int, cancel: CancelToken) -> PieceTimes:
        request = GenerationRequest(
            (Message("user", _QUESTION),),
            SamplingParams(temperature=None, top_p=None, max_tokens=tokens),
        )
        sent_s = self.clock()
        came: list[float] = []
        chars = 0
        with closing(self.backend.stream(request, cancel)) as items:
            for item in items:
                if isinstance(item, Delta) and item.text:
                    came.append(self.clock() - sent_s)
                    chars += len(item.text)
        if not came:
            came.append(self.clock() - sent_s)
        return PieceTimes(tuple(came), chars)
