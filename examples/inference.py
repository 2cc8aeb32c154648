"""What the examples share: the engine as settings describe it, asked by one call."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from uuid import uuid4

from llm.answer_status import before_text, in_line
from llm.catalogue import Catalogue
from llm.errors import SettingsError
from llm.job import GenerationJob, Snapshot
from llm.named_backends import NamedBackends
from llm.question import usable_question
from llm.registry import JobRegistry, Place
from llm.settings import load_settings
from llm.types import GenerationRequest, Message
from llm.usual_params import usual_params


class Inference:
    """All that answers in this process. The first backend begins to get ready at once.

    Where settings can't be used the process ends, and says why.

    Args:
        most_chars: a longer question is refused, where settings don't say less.

    Attributes:
        backends: name to backend, in the settings' order.
        usual: the name of the first.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, most_chars: int = sys.maxsize) -> None:
        try:
            self._told = told = load_settings()
            self._named = NamedBackends(told, as_chosen=False)
            by_id = self._named.by_id()
            self.backends = {
                name: by_id[name]()
                for kind in told.backends
                for name in by_id
                if name.partition("/")[0] == kind
            }
        except SettingsError as error:
            sys.exit(str(error))
        self.usual = next(iter(self.backends))
        self.backends[self.usual].prepare()
        self._most_chars = min(told.max_question_chars, most_chars)
        self._registry = JobRegistry.from_settings(told)

    def ask(
        self, backend: str, person: str, history: Sequence[Message], question: str
    ) -> GenerationJob:
        """Have the question answered, when it is this person's turn; the job tells the rest.

        Raises:
            LLMError: it isn't taken, and the sentence says why.
        """
        asked = Message("user", usable_question(question, self._most_chars))
        system = self._told.system_prompt
        before = [Message("system", system)] if system.strip() else []
        params = usual_params(self._told, self._told.model if backend == "local" else "")
        return self._registry.submit(
            uuid4().hex,  # each question by itself: nobody is given another's answer
            person,
            self.backends[backend],
            GenerationRequest(
                (*before, *history, asked), params.at_most(self._told.max_answer_tokens)
            ),
            save=lambda snapshot: None,  # the pages keep it, as long as they are open
        )

    def going_on(self, job: GenerationJob, now: Snapshot, words: Catalogue) -> str:
        """What there is to say while there is no text yet; empty when it can be seen."""
        if now.done or now.text.strip():
            return ""
        if now.thinking:
            return words.say("reasoning-thinking")
        if now.phase == "waiting":
            place = self._registry.place_of(job) or Place(1, 0.0)  # it has just been taken
            return in_line(place, job.backend.status()).sentence(words)
        return before_text(job, now).sentence(words)

    def close(self) -> None:
        """Stop every answer and free the backends."""
        self._registry.close()
        self._named.close()
