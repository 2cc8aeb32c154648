"""How many people one process of the app carries.

    python -m benchmarks.people --counts 1,8,32 --rate 30

So many sessions (web_session.py) open the page and ask, one after the other, so evenly that at any
time as many answers run as there are people: each asks twice, the second question a second after the
first answer. The answers come from a server that speaks vLLM's protocol (protocol_server.py),
a token an event, at the pace that a well used GPU gives each person. Nothing is painted, so each
session counts as a quick screen, which is the dearest for the app.

- **server CPU**: processor seconds of the Streamlit process over the time in which everybody has an
  answer running and asks once: 100 % is one core. A Python process has little use for more than one.
- **first text**: from asking the second question until the message with its first text has arrived;
  the median and the worst of all people. The server behind answers at once, so all of it is what the
  app adds to a model's TTFT, over and above one round trip.
- **behind at the end**: from when the last piece of the first answer was due, by its first one and
  the rate, until the message with it has arrived.
- **generator late**: from when that piece was due until the client handed it over, the worst: the
  process is then too busy to keep the model's own pace.
- **memory**: what the process has grown by for each open conversation.
- **CPU beside it**: what playing the people and the model took of the same machine; on few cores
  it is taken from the app.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psutil

from benchmarks import answers
from benchmarks.chat_page import APP, SCRIPTS
from benchmarks.protocol_server import protocol_server
from benchmarks.server import Server, serve
from benchmarks.table import Row, Section, render, row
from benchmarks.web_session import WebSession

GRACE_S = 60.0
CALM_S = 2.0
READING_S = 1.0
"""From an answer's end to the next question: nobody asks while the end is still being drawn."""
COUNTS = (1, 8, 16, 32, 48)


@dataclass(frozen=True, slots=True)
class PeopleFigures:
    """So many people at once; see the module's docstring. Times in seconds."""

    people: int
    tokens: int
    rate: float
    cpu_share: float
    beside_cpu_share: float
    first_text_s: tuple[float, ...]
    behind_s: tuple[float, ...]
    generator_late_s: tuple[float, ...]
    messages_per_s: float
    sent_kb: float
    rss_before_mb: float
    rss_after_mb: float

    @property
    def memory_mb(self) -> float:
        """Megabytes a person."""
        return (self.rss_after_mb - self.rss_before_mb) / self.people


def measure_people(people: int, tokens: int, rate: float) -> PeopleFigures:
    """Let `people` people ask at once, on a fresh server.

    Raises:
        TimeoutError: some answer wasn't whole a minute after it should have been.
    """
    with protocol_server(tokens, rate) as (base_url, model):
        environment = {
            "STEADY_CHAT_BACKENDS": "vllm",
            "STEADY_CHAT_VLLM_BASE_URL": base_url,
            "STEADY_CHAT_VLLM_SLOTS": str(people),
            "STEADY_CHAT_MAX_TOKENS": str(tokens * 2),
        }
        # Playwright, where it is in use, has an event loop in this thread already.
        with serve(SCRIPTS[APP], environment) as server, ThreadPoolExecutor(1) as thread:
            measured = _measure(server, model, people, tokens, rate)
            return thread.submit(asyncio.run, measured).result()


async def _measure(
    server: Server, model: psutil.Process, people: int, tokens: int, rate: float
) -> PeopleFigures:
    async with AsyncExitStack() as stack:
        # The first visitor pays for what the process does once.
        first = await stack.enter_async_context(WebSession(server.url))
        await first.open_page()
        await _ask(first, "the first one", tokens)
        rss_mb = server.rss_mb()
        sessions = [await stack.enter_async_context(WebSession(server.url)) for _ in range(people)]
        for session in sessions:
            await session.open_page()
        await asyncio.sleep(CALM_S)
        round_s = tokens / rate
        async with asyncio.timeout(3 * round_s + GRACE_S), asyncio.TaskGroup() as group:
            conversations = [
                group.create_task(_ask_twice(session, number, round_s * number / people, tokens))
                for number, session in enumerate(sessions)
            ]
            # By now the last one has asked, and the first one is about to ask again.
            await asyncio.sleep(round_s)
            before = _Count(server, model, sessions)
            await asyncio.sleep(round_s)
            after = _Count(server, model, sessions)
        span_s = after.at - before.at
        first_text_s, behind_s, late_s = [], [], []
        for number, conversation in enumerate(conversations):
            once, again = conversation.result()
            times = server.stream_times(_question(number, 1))
            assert times is not None
            assert times.last is not None
            due_at = times.first + (tokens - 1) / rate
            first_text_s.append(again.begun_at - again.asked_at)
            behind_s.append(once.ended_at - due_at)
            late_s.append(times.last - due_at)
        return PeopleFigures(
            people=people,
            tokens=tokens,
            rate=rate,
            cpu_share=(after.cpu_s - before.cpu_s) / span_s,
            beside_cpu_share=(after.beside_cpu_s - before.beside_cpu_s) / span_s,
            first_text_s=tuple(first_text_s),
            behind_s=tuple(behind_s),
            generator_late_s=tuple(late_s),
            messages_per_s=(after.messages - before.messages) / span_s / people,
            sent_kb=(after.bytes_sent - before.bytes_sent) / 1000 / people,
            rss_before_mb=rss_mb,
            rss_after_mb=server.rss_mb(),
        )


class _Count:
    """What has been used and sent up to now."""

    def __init__(
        self, server: Server, model: psutil.Process, sessions: Sequence[WebSession]
    ) -> None:
        self.at = time.time()
        self.cpu_s = server.cpu_s()
        modelled = model.cpu_times()
        self.beside_cpu_s = time.process_time() + modelled.user + modelled.system
        self.bytes_sent = sum(session.received_bytes for session in sessions)
        self.messages = sum(session.received_messages for session in sessions)


@dataclass(frozen=True, slots=True)
class _Answer:
    """When it was asked for, when its first text had come, when its end."""

    asked_at: float
    begun_at: float
    ended_at: float


def _question(number: int, time_asked: int) -> str:
    return f"person {number} asks, time {time_asked}."


async def _ask_twice(
    session: WebSession, number: int, delay_s: float, tokens: int
) -> tuple[_Answer, _Answer]:
    await asyncio.sleep(delay_s)
    once = await _ask(session, _question(number, 1), tokens)
    await asyncio.sleep(READING_S)
    return once, await _ask(session, _question(number, 2), tokens)


async def _ask(session: WebSession, question: str, tokens: int) -> _Answer:
    asked_at = await session.ask(question)
    begun_at = await session.wait_for(f"{answers.BEGIN_MARK} {question}")
    ended_at = await session.wait_for(f"{answers.end_mark(tokens)} {question}")
    return _Answer(asked_at, begun_at, ended_at)


def people_section(figures: PeopleFigures) -> Section:
    """The figures of one count."""

    def of_all(figure: str, values: Sequence[float]) -> Row:
        """The median, and in brackets the worst."""
        return row(
            figure,
            {APP: statistics.median(values)},
            lambda median: f"{median:.2f} s ({max(values):.2f} s)",
        )

    f = figures
    rows = (
        row("server CPU", {APP: 100 * f.cpu_share}, "{:.0f} % of a core".format),
        row("server CPU a person", {APP: 100 * f.cpu_share / f.people}, "{:.1f} %".format),
        of_all("first text (worst)", f.first_text_s),
        of_all("behind at the end (worst)", f.behind_s),
        row("generator late, worst", {APP: max(f.generator_late_s)}, "{:.2f} s".format),
        row("messages a person", {APP: f.messages_per_s}, "{:.0f}/s".format),
        row("to the browser", {APP: f.sent_kb}, "{:.0f} kB".format),
        row("memory a person", {APP: f.memory_mb}, "{:.1f} MB".format),
        row("CPU beside it", {APP: 100 * f.beside_cpu_share}, "{:.0f} % of a core".format),
    )
    who = "1 person" if f.people == 1 else f"{f.people} people at once"
    return Section(f"{who}, {f.tokens:,} tokens each at {f.rate:g} tok/s", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="How many people one process carries.")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)))
    parser.add_argument("--tokens", type=int, default=600)
    parser.add_argument("--rate", type=float, default=30)
    chosen = parser.parse_args()
    for count in map(int, chosen.counts.split(",")):
        print(render([people_section(measure_people(count, chosen.tokens, chosen.rate))]))


if __name__ == "__main__":
    main()
