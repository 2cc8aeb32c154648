"""What the examples share: the settings' backends, one fair line before each, asked by one call."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields
from uuid import uuid4

from llm.catalogue import Catalogue
from llm.errors import EmptyQuestionError, QuestionTooLongError, Reason, SettingsError
from llm.job import GenerationJob, Snapshot
from llm.local_backend import LocalBackend
from llm.patient_backend import PatientBackend
from llm.registry import JobRegistry
from llm.scripted_backend import ScriptedBackend
from llm.served_values import keepable
from llm.settings import Settings, load_settings
from llm.types import Backend, GenerationRequest, Message, SamplingParams
from llm.vllm_backend import VllmBackend


class Inference:
    """All that answers in this process. The first backend begins to get ready at once.

    Args:
        max_question_chars: a longer question is refused, where settings don't say less.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, told: Settings, max_question_chars: int) -> None:
        self._max_question_chars = min(told.max_question_chars, max_question_chars)
        self._registry = JobRegistry(
            max_waiting=told.max_waiting,
            max_waiting_each=told.max_waiting_each,
            idle_limit_s=told.idle_timeout_s + 5,
        )
        self.backends = _named_backends(told)
        self._params = SamplingParams(
            **{each.name: getattr(told, each.name) for each in fields(SamplingParams)}
        ).at_most(told.max_answer_tokens)
        self._before = (Message("system", told.system_prompt),) if told.system_prompt else ()
        next(iter(self.backends.values())).prepare()

    @classmethod
    def from_settings(cls, max_question_chars: int = 100_000) -> Inference:
        """As the environment and settings files say; ends the process where they can't be used."""
        try:
            return cls(load_settings(), max_question_chars)
        except SettingsError as error:
            sys.exit(str(error))

    def ask(
        self, backend: str, person: str, history: Sequence[Message], question: str
    ) -> GenerationJob:
        """Have the question answered, when it is this person's turn; the job tells the rest.

        Raises:
            LLMError: it isn't taken, and the sentence says why.
        """
        if not question.strip():
            raise EmptyQuestionError
        if (chars := len(question)) > (limit := self._max_question_chars):
            raise QuestionTooLongError(chars=chars, limit=limit, over=chars - limit)
        messages = (*self._before, *history, Message("user", keepable(question)))
        return self._registry.submit(
            uuid4().hex,  # each question by itself: nobody is given another's answer
            person,
            self.backends[backend],
            GenerationRequest(messages, self._params),
            save=lambda snapshot: None,  # the pages keep it, as long as they are open
        )

    def going_on(self, job: GenerationJob, now: Snapshot, words: Catalogue) -> str:
        """What there is to say while there is no text yet; empty when it can be seen."""
        return "" if now.done or now.text.strip() else self._awaited(job, now).sentence(words)

    def _awaited(self, job: GenerationJob, now: Snapshot) -> Reason:
        if now.phase == "waiting":
            place = self._registry.place_of(job)
            return Reason("answer-waiting", {"place": place.number if place else 1})
        if now.thinking:
            return Reason("reasoning-thinking")
        if now.notice is not None:
            seconds = int(job.notice_s())
            return Reason(now.notice.message_id, {**now.notice.values, "seconds": seconds})
        status = job.backend.status()
        if status.preparing and not status.meanwhile:
            return Reason("answer-preparing", {"phase": Reason(f"phase-{status.phase}")})
        return Reason("answer-reading", {"seconds": int(job.reading_s())})

    def close(self) -> None:
        """Stop every answer and free the backends."""
        self._registry.close()
        for backend in self.backends.values():
            backend.close()


def _named_backends(told: Settings) -> dict[str, Backend]:
    """The backends that settings offer, by name and in their order."""
    made: dict[str, Backend] = {}
    for kind in told.backends:
        if kind == "local":
            made[kind] = LocalBackend.from_settings(told)
        elif kind == "scripted":
            made[kind] = ScriptedBackend.from_settings(told)
        else:
            for server in told.all_servers():
                asked = VllmBackend.from_settings(told, server.name)
                made[f"vllm/{server.name}"] = PatientBackend(asked, wait_s=told.server_wait_s)
    return made
