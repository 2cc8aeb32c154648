"""What a deployment lets its answer cache do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from llm.cache_ttl import CacheTtl
from llm.shareable import fit_to_share
from llm.types import GenerationRequest, SamplingParams

if TYPE_CHECKING:
    from llm.settings import Settings


@dataclass(frozen=True, slots=True)
class CacheRules:
    """What a deployment allows.

    Args:
        shared: whether all users may be given each other's answers to first questions.
        shared_clear: whether all users may forget the shared ones.
        system_prompt: the deployment's own; what another one shaped isn't shared.
        max_chars: a longer answer isn't kept.
        pieces_per_s: a typewriter's pace; None says a stored answer at once.
    """

    shared: bool = False
    shared_clear: bool = False
    system_prompt: str = ""
    ttl: CacheTtl = field(default_factory=CacheTtl)
    max_chars: int = 100_000
    pieces_per_s: float | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> CacheRules:
        """As this installation is set up."""
        return cls(
            shared=settings.cache_shared,
            shared_clear=settings.cache_shared_clear,
            system_prompt=settings.system_prompt,
            ttl=CacheTtl.from_settings(settings),
            max_chars=settings.cache_max_chars,
            pieces_per_s=settings.cache_pieces_per_s,
        )

    def shared_with_all(self, request: GenerationRequest) -> bool:
        """Whether the answer may be everybody's: nothing that a person wrote but the question, and
        that about nobody."""
        if not self.shared:
            return False
        told = [message.content for message in request.messages if message.role == "system"]
        return all(text == self.system_prompt for text in told) and fit_to_share(
            request.messages[-1].content
        )


def is_random(params: SamplingParams) -> bool:
    """Whether the same question is expected to be answered otherwise each time.

    A temperature that is left out may be anything.
    """
    return params.seed is None and params.temperature != 0 and params.top_k != 1
