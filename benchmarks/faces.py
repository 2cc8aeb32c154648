"""The same answer through every face of the engine: what each adds between a token and its reader.

    python -m benchmarks.faces --tokens 3000 --rate 200 --only engine,pipe,openai

The scripted backend gives the answer, each piece at its own hour, in the face's own process. The
answer has numbered marks; each is timed where a person or a program would have it: in the job's
snapshot, in a pipe, in an event of HTTP, painted on a screen.

- **engine**: a thread that waits for the job's snapshots and does nothing with them.
- **pipe**, **terminal**: `python -m llm`, into a pipe and with Rich on a terminal. A terminal is sent
  its last lines again and again, so how long the text was can't be told there.
- **openai**, **stream**: a client of `/v1/chat/completions` and of `/stream`.
- **app**, **gradio**, **socketio**: the page, and the examples' pages, in Chromium.

- **complete**: every mark once and in order. On the terminal the last one is enough.
- **token to reader**: from when a mark's piece was due until it was there; the median, and 95 of
  100. The first ones can tell more of a start than of a stream, so they don't count.
- **behind at the end**: the same for the last mark of all.
- **first text**: from asking until the first mark. A program that is started to answer has its start
  in it.
- **arrivals**: pieces read from the job, the pipe or the line; on a page, frames with something new.
- **times the answer**: bytes over the line (for a page as the kernel counted them, packed where it
  is packed) over the answer's own in UTF-8.
- **CPU of its process**: processor seconds from asking to the end, start included where it is
  started to answer.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import answers
from benchmarks.browser_probe import Probe, chromium, open_page
from benchmarks.chat_page import APP, CALM_S, PAGE_TIMEOUT_S, SCRIPTS
from benchmarks.face_readers import (
    Reading,
    read_native,
    read_openai,
    read_pipe,
    read_terminal,
)
from benchmarks.peers.sent_bytes import SentBytes
from benchmarks.server import Server, StreamTimes, free_port, run_server, serve, stream_times
from benchmarks.table import Row, Section, render, row, yes_no
from llm.job import GenerationJob
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from llm.types import GenerationRequest, Message, SamplingParams

KEY = "a-key-for-the-benchmark"
GRACE_S = 30.0
AFTER_END_S = 1.0
SETTLED = 3
"""So many marks are passed over at the beginning."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The answer's marks, the end mark last, and with which piece and character each is whole."""

    texts: tuple[str, ...]
    pieces: tuple[int, ...]
    chars: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Marks:
        ends = list(accumulate(len(piece) for _, piece in Script(text).pieces("")))
        found = [match[0] for match in answers.BLOCK_MARK.finditer(text)]
        found.append(text.rpartition("\n")[2])  # the end mark
        chars = [text.index(mark) + len(mark) for mark in found]
        pieces = [next(n for n, end in enumerate(ends) if end >= at) for at in chars]
        return cls(tuple(found), tuple(pieces), tuple(chars))


@dataclass(frozen=True, slots=True)
class FaceFigures:
    """One face, one answer; see the module's docstring. None: not measured."""

    face: str
    tokens: int
    rate: float
    complete: bool
    first_text_s: float | None
    delays_ms: tuple[float, ...]
    behind_s: float | None
    arrivals: int
    sent_bytes: int | None
    answer_bytes: int
    cpu_s: float | None

    @property
    def p50_ms(self) -> float | None:
        return statistics.median(self.delays_ms) if self.delays_ms else None

    @property
    def p95_ms(self) -> float | None:
        ordered = sorted(self.delays_ms)
        return ordered[int(0.95 * (len(ordered) - 1))] if ordered else None

    @property
    def times_the_answer(self) -> float | None:
        return self.sent_bytes / self.answer_bytes if self.sent_bytes is not None else None


class Asked:
    """One answer, its scripts file and the environment in which every face gives it."""

    def __init__(self, folder: Path, tokens: int, rate: float) -> None:
        self.tokens, self.rate, self.folder = tokens, rate, folder
        self.question, self.text = answers.question(tokens), answers.answer(tokens)
        self.marks = Marks.of(self.text)
        self.scripts = answers.write_scripts(folder, tokens, rate)
        self.due_s = (tokens - 1) / rate

    def environment(self, name: str) -> dict[str, str]:
        own = self.folder / name
        own.mkdir(exist_ok=True)
        return {
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_SCRIPTS_FILE": str(self.scripts),
            "STEADY_CHAT_MAX_TOKENS": "1000000",
            "STEADY_CHAT_LANGUAGE": "en",
            "STEADY_CHAT_CACHE": "off",
            "STEADY_CHAT_DATA_DIR": str(own),
            "STEADY_CHAT_API_KEY": KEY,
        }

    def figures(
        self,
        face: str,
        seen: Sequence[float | None],
        asked_at: float,
        times: StreamTimes | None,
        *,
        complete: bool,
        arrivals: int,
        sent_bytes: int | None,
        cpu_s: float | None,
    ) -> FaceFigures:
        """Put together what a reader saw and when the backend began.

        Args:
            seen: when each mark was there, seconds of the wall clock; None where it wasn't seen.
        """
        first = times.first if times else None
        delays = []
        if first is not None:
            for piece, at in zip(self.marks.pieces, seen, strict=True):
                if at is not None:
                    delays.append(1000 * (at - first - piece / self.rate))
        return FaceFigures(
            face=face,
            tokens=self.tokens,
            rate=self.rate,
            complete=complete,
            first_text_s=seen[0] - asked_at if seen[0] else None,
            delays_ms=tuple(delays[SETTLED:]),
            behind_s=seen[-1] - first - self.due_s if seen[-1] and first else None,
            arrivals=arrivals,
            sent_bytes=sent_bytes,
            answer_bytes=len(self.text.encode()),
            cpu_s=cpu_s,
        )

    def read(self, face: str, reading: Reading, times: StreamTimes | None) -> FaceFigures:
        """The figures of a reader that isn't a browser."""
        seen: list[float | None] = []
        for chars in self.marks.chars:
            seen.append(next((at for at, so_far in reading.arrivals if so_far >= chars), None))
        return self.figures(
            face,
            seen,
            reading.asked_at,
            times,
            complete=reading.text.strip() == self.text.strip(),
            arrivals=len(reading.arrivals),
            sent_bytes=reading.sent_bytes,
            cpu_s=reading.cpu_s,
        )


def measure_engine(browser: Browser, asked: Asked) -> FaceFigures:
    """The job by itself, in this process; it has no bytes and no process of its own."""
    backend = ScriptedBackend.from_file(asked.scripts)
    began: list[float] = []
    params = SamplingParams(max_tokens=asked.tokens)
    request = GenerationRequest((Message("user", asked.question),), params)
    job = GenerationJob("benchmark", "somebody", backend, request, save=lambda snapshot: None)
    reading, version = Reading(time.time()), -1

    def read() -> None:
        nonlocal version
        while True:
            snapshot = job.wait(version, 1.0)
            if snapshot.text and not began:
                began.append(time.time())
            if snapshot.version != version and len(snapshot.text) > len(reading.text):
                reading.got(snapshot.text[len(reading.text) :])
            version = snapshot.version
            if snapshot.done:
                return

    reader = threading.Thread(target=read)
    reader.start()
    job.start()
    reader.join()
    backend.close()
    times = StreamTimes(began[0], None, 1) if began else None
    return asked.read("engine", reading, times)


def measure_program(browser: Browser, asked: Asked, *, terminal: bool) -> FaceFigures:
    """`python -m llm`, started to answer."""
    face = "terminal" if terminal else "pipe"
    log = asked.folder / f"{face}.jsonl"
    log.touch()
    command = [sys.executable, "-m", "benchmarks.launch_face", "llm"]
    command += ["--max-tokens", "1000000", asked.question]
    reader = read_terminal if terminal else read_pipe
    reading = reader(command, asked.environment(face), log)
    times = stream_times(log, asked.question)
    if not terminal:
        return asked.read(face, reading, times)
    # What a terminal is sent isn't the text, but its marks are in it.
    seen, so_far = [], 0
    for mark in asked.marks.texts:
        at = reading.text.find(mark)
        seen.append(next((when for when, chars in reading.arrivals if chars > at), None))
        so_far += at >= 0
    return asked.figures(
        face,
        seen,
        reading.asked_at,
        times,
        complete=so_far == len(asked.marks.texts),
        arrivals=len(reading.arrivals),
        sent_bytes=reading.sent_bytes,
        cpu_s=reading.cpu_s,
    )


def measure_client(
    browser: Browser, asked: Asked, face: str, reader: Callable[[str, str, str, str], Reading]
) -> FaceFigures:
    """A client of the running app's HTTP API."""
    with serve(SCRIPTS[APP], asked.environment(face)) as server:
        reader(server.url, KEY, "scripted", answers.WARM_UP_QUESTION)
        cpu_s = server.cpu_s()
        reading = reader(server.url, KEY, "scripted", asked.question)
        reading.cpu_s = server.cpu_s() - cpu_s
        return asked.read(face, reading, server.stream_times(asked.question))


@dataclass(frozen=True, slots=True)
class Page:
    """A face in a browser: where its question goes, and what holds its newest answer."""

    module: str
    field: str
    answer: str
    port_variable: str = ""


PAGES = {
    "app": Page("", "[data-testid=stChatInputTextArea]", "[data-testid=stChatMessage]"),
    "gradio": Page(
        "examples.gradio_app",
        "textarea[data-testid=textbox]",
        ".message.bot, .bot.message",
        "GRADIO_SERVER_PORT",
    ),
    "socketio": Page("examples.socketio_app", "textarea", "article.answer", "PORT"),
}


def measure_page(browser: Browser, asked: Asked, face: str) -> FaceFigures:
    """The page, in a fresh tab of a fresh server."""
    page = PAGES[face]
    with _serve(asked, face) as server, open_page(browser, server.url) as probe:
        field = probe.page.locator(page.field)
        field.wait_for(timeout=PAGE_TIMEOUT_S * 1000)
        probe.page.wait_for_timeout(CALM_S * 1000)
        _ask(probe, page, answers.WARM_UP_QUESTION, {"warm": answers.WARM_UP_MARK})
        if probe.wait_seen("warm", PAGE_TIMEOUT_S, every_ms=100) is None:
            raise RuntimeError(f"no warm-up answer; the server said:\n{server.said()}")
        probe.page.wait_for_timeout(CALM_S * 1000)
        with SentBytes(int(server.url.rpartition(":")[2])) as sent:
            cpu_s = server.cpu_s()
            probe.reset()
            marks = {f"mark {n}": mark for n, mark in enumerate(asked.marks.texts)}
            asked_at = _ask(probe, page, asked.question, marks)
            ended_at = probe.wait_seen([*marks][-1], asked.due_s + GRACE_S)
            probe.page.wait_for_timeout(AFTER_END_S * 1000)
            counted, sent_bytes = probe.read(), sent.so_far()
            cpu_s = server.cpu_s() - cpu_s
        shown = probe.page.locator(page.answer).last.text_content() or ""
        missing = answers.missing_blocks(asked.text, shown)
        return asked.figures(
            face,
            [counted.seen.get(name) for name in marks],
            asked_at,
            server.stream_times(asked.question),
            complete=ended_at is not None and not missing,
            arrivals=counted.drawn,
            sent_bytes=sent_bytes,
            cpu_s=cpu_s,
        )


@contextmanager
def _serve(asked: Asked, face: str) -> Iterator[Server]:
    page, environment = PAGES[face], asked.environment(face)
    if not page.module:
        with serve(SCRIPTS[APP], environment) as server:
            yield server
        return
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.launch_face", page.module]
    environment[page.port_variable] = str(port)
    with run_server(command, environment, port, "", asked.folder / face) as server:
        yield server


def _ask(probe: Probe, page: Page, question: str, marks: dict[str, str]) -> float:
    for name, text in marks.items():
        probe.watch(name, text)
    field = probe.page.locator(page.field)
    field.fill(question)
    field.press("Enter")
    asked_at = probe.read().input_at
    assert asked_at is not None
    return asked_at


FACES: dict[str, Callable[[Browser, Asked], FaceFigures]] = {
    "engine": measure_engine,
    "pipe": partial(measure_program, terminal=False),
    "terminal": partial(measure_program, terminal=True),
    "openai": partial(measure_client, face="openai", reader=read_openai),
    "stream": partial(measure_client, face="stream", reader=read_native),
    **{face: partial(measure_page, face=face) for face in PAGES},
}


def measure_faces(
    browser: Browser, tokens: int, rate: float, faces: Sequence[str] = tuple(FACES)
) -> list[FaceFigures]:
    """The same answer through each of these faces, one after the other."""
    figures = []
    for face in faces:
        with tempfile.TemporaryDirectory(prefix="steady-chat-bench-") as folder:
            figures.append(FACES[face](browser, Asked(Path(folder), tokens, rate)))
    return figures


def faces_section(figures: Sequence[FaceFigures]) -> Section:
    """The figures, face beside face."""

    def of(
        figure: str, value: Callable[[FaceFigures], float | None], show: Callable[[float], str]
    ) -> Row:
        return row(figure, {f.face: value(f) for f in figures}, show)

    first = figures[0]
    return Section(
        f"through each face: {first.tokens:,} tokens at {first.rate:g} tok/s",
        (
            yes_no("complete", {f.face: f.complete for f in figures}, wanted=False),
            of("token to reader, p50", lambda f: f.p50_ms, "{:.1f} ms".format),
            of("token to reader, p95", lambda f: f.p95_ms, "{:.1f} ms".format),
            of("behind at the end", lambda f: f.behind_s, "{:.3f} s".format),
            of("first text", lambda f: f.first_text_s, "{:.2f} s".format),
            of("arrivals", lambda f: f.arrivals, "{:,.0f}".format),
            of("times the answer", lambda f: f.times_the_answer, "{:.1f}x".format),
            of("CPU of its process", lambda f: f.cpu_s, "{:.2f} s".format),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="One answer through every face.")
    parser.add_argument("--tokens", type=int, default=3_000)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--only", default=",".join(FACES), help="of " + ", ".join(FACES))
    chosen = parser.parse_args()
    with chromium() as browser:
        figures = measure_faces(browser, chosen.tokens, chosen.rate, chosen.only.split(","))
    print(render([faces_section(figures)]))


if __name__ == "__main__":
    main()
