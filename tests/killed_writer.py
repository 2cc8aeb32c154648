"""A process of the app that is to be killed: people ask, answers stream into a database.

    python -m tests.killed_writer URL

Each accepted question is told on standard output before the next thing happens, as
`asked CONVERSATION QUESTION`; every tenth of a second `tick SECONDS`, and how long each answer is
in memory, as `grown SECONDS TURN CHARACTERS`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator

from llm.chat import Chat
from llm.conversation_database import ConversationDatabase
from llm.conversations import ConversationStore
from llm.registry import JobRegistry
from llm.types import BackendStatus, CancelToken, Delta, Finish, GenerationRequest, SamplingParams

PEOPLE = 6
PIECE_S = 0.002
TICK_S = 0.1


def whole_answer(question: str) -> list[str]:
    """The pieces of the answer: every other person's are long, the others' soon over."""
    number = int(question[1])
    return [f"{each:05} " for each in range(10_000 if number % 2 else 100)]


class Talker:
    """Answers at a steady pace; each piece can be told from the others."""

    name = "talker"
    slots = PEOPLE

    def status(self) -> BackendStatus:
        return BackendStatus("ready", "talker")

    def prepare(self) -> None:
        pass

    def window_tokens(self, request: GenerationRequest) -> int | None:
        return None

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        return None

    def fingerprint(self, request: GenerationRequest) -> None:
        return None

    def stream(self, request: GenerationRequest, cancel: CancelToken) -> Generator[Delta | Finish]:
        for piece in whole_answer(request.messages[-1].content):
            if cancel.cancelled:
                break
            time.sleep(PIECE_S)
            yield Delta(piece)
        yield Finish("abort" if cancel.cancelled else "stop")

    def close(self) -> None:
        pass


def main(url: str) -> None:
    registry, talker, out = JobRegistry(), Talker(), threading.Lock()
    store = ConversationStore(ConversationDatabase(url, f"killed {time.time()}"))
    chat = Chat(store, registry, {"talker": lambda: talker})

    def say(line: str) -> None:
        with out:
            print(line, flush=True)

    def person(name: str) -> None:
        key = chat.open(name, None)
        for number in range(10_000):
            question = f"{name}-{number}"
            if number % 10 == 0:
                key = chat.open(name, None)
            chat.ask(key, question, person=name, backend="talker", params=SamplingParams())
            say(f"asked {key.conversation_id} {question}")
            while (job := chat.job(key)) is not None and number % 2:
                job.wait(job.snapshot().version, 1.0)

    for number in range(PEOPLE):
        threading.Thread(target=person, args=(f"p{number}",), daemon=True).start()
    while True:
        time.sleep(TICK_S)
        say(f"tick {time.monotonic():.3f}")
        for job in registry.jobs():
            text = job.snapshot().text
            say(f"grown {time.monotonic():.3f} {job.request.request_id} {len(text)}")


if __name__ == "__main__":
    main(sys.argv[1])
