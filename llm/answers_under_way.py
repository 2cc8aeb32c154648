"""The shared answers that are under way, so that who asks the same follows one of them."""

from __future__ import annotations

import threading

from llm.cache_types import SHARED
from llm.cached_question import CachedQuestion
from llm.job import GenerationJob
from llm.joined_answer import MOST_FOLLOWERS, UnderWay


class AnswersUnderWay:
    """By what they are asked for.

    Who is content with the very same question isn't given what may become a similar one's.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[tuple[str, bool], UnderWay] = {}  # by digest and `similar`
        self._leading: dict[str, UnderWay] = {}  # by request, until its job is known

    def join(self, asked: CachedQuestion) -> UnderWay | None:
        """The same question's answer under way; None where there is none, and now it is this."""
        if asked.key is None or asked.key.scope != SHARED or asked.use.fresh:
            return None
        name = _name(asked)
        with self._lock:
            under_way = self._under_way.get(name)
            if under_way is not None and not under_way.over:
                under_way.followers += 1
                return under_way if under_way.followers <= MOST_FOLLOWERS else None
            for each in [each for each, way in self._under_way.items() if way.over]:
                del self._under_way[each]
            leading = UnderWay()
            self._under_way[name] = self._leading[asked.request.request_id] = leading
            return None

    def submitted(self, request_id: str, job: GenerationJob | None) -> None:
        """Say which job answers a request; None where it was refused."""
        with self._lock:
            leading = self._leading.pop(request_id, None)
        if leading is not None:
            leading.is_answered_by(job)

    def next(self, asked: CachedQuestion, ended: UnderWay) -> tuple[bool, UnderWay]:
        """What to follow after one that ended too early; true where it is the asker's to lead."""
        name = _name(asked)
        with self._lock:
            under_way = self._under_way.get(name)
            if under_way is not None and under_way is not ended and not under_way.over:
                return False, under_way
            self._under_way[name] = leading = UnderWay()
            return True, leading


def _name(asked: CachedQuestion) -> tuple[str, bool]:
    assert asked.key is not None
    return asked.key.digest, asked.use.similar
