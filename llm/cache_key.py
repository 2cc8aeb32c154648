"""What decides whether two questions may have the same answer: everything, unless proven harmless.

Nothing is normalised, neither letters nor white space: `i++` isn't `++i`, `C` isn't `c`, and two
spaces are code somewhere. What comes in as the two halves of a character (lone surrogates, which no
browser sends) has the digest of that character: it is the same text, and is joined before a model
is asked.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple

from llm.cache_types import SHARED, CacheKey
from llm.types import Fingerprint, GenerationRequest

CACHE_VERSION = 1
"""Goes up when an older answer must not be given any more."""


def cache_key(fingerprint: Fingerprint, request: GenerationRequest, *, shared: bool) -> CacheKey:
    """The key of a request whose last message is the question.

    Args:
        shared: whether the deployment lets all its users have each other's answers. That goes for
            a first question alone: what came before may be anybody's business.

    Raises:
        ValueError: the request isn't one that a cache may be asked for.
    """
    if request.cache is None or not request.messages or request.messages[-1].role != "user":
        raise ValueError("no question, or no wish for a cache")
    *before, question = request.messages
    scope = SHARED if shared and is_first(request) else person_scope(request.cache.owner)
    told = [
        CACHE_VERSION,
        scope,
        astuple(fingerprint),
        [[message.role, message.content] for message in before],
        astuple(request.params),
    ]
    partition = _digest(told)
    return CacheKey(_digest([partition, question.content]), partition, scope)


def is_first(request: GenerationRequest) -> bool:
    """Whether nothing was said before the question."""
    return [message.role for message in request.messages if message.role != "system"] == ["user"]


def person_scope(owner: str) -> str:
    """What stands for one person in a store: never their id itself, and never `SHARED`."""
    return "p-" + hashlib.blake2b(owner.encode(), digest_size=16).hexdigest()


def _digest(told: object) -> str:
    plain = json.dumps(told, ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(plain.encode(), digest_size=20).hexdigest()
