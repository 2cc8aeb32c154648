"""A question as an answer cache sees it: what it is looked up under, or why it isn't."""

from __future__ import annotations

from dataclasses import dataclass

from llm.cache_key import cache_key
from llm.cache_rules import CacheRules, is_random
from llm.cache_types import CacheKey
from llm.cacheable import why_not
from llm.types import Backend, CacheUse, Fingerprint, GenerationRequest


@dataclass(frozen=True, slots=True)
class CachedQuestion:
    """A question that may be cached.

    Args:
        key: what it is looked up under; None while it isn't known for certain who would answer.
    """

    use: CacheUse
    request: GenerationRequest
    key: CacheKey | None

    @property
    def text(self) -> str:
        return self.request.messages[-1].content


def question_of(
    rules: CacheRules, backend: Backend, request: GenerationRequest
) -> CachedQuestion | str | None:
    """What to look for; a reason why nothing is, or None where nobody wants to know."""
    use = request.cache
    if use is None or request.start_text is not None or not request.messages:
        return None
    if is_random(request.params) and not use.random:
        return "random"
    if reason := why_not(request.messages):
        return reason
    return CachedQuestion(use, request, key_of(rules, backend.fingerprint(request), request))


def key_of(
    rules: CacheRules, fingerprint: Fingerprint | None, request: GenerationRequest
) -> CacheKey | None:
    """What it is kept under where that answered; None where it isn't known what did."""
    if fingerprint is None:
        return None
    return cache_key(fingerprint, request, shared=rules.shared_with_all(request))
