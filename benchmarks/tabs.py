"""How many tabs one process and one machine's browser keep within the bars.

    python -m benchmarks.tabs --counts 5,10,20

Real tabs of one browser on one server, each with a person of its own. All of them ask at once, and
one after the other is clicked and typed into while the answers stream. Browser, server and model
share the machine's cores here: with people's own machines before their own tabs the server alone
would count (people.py). No tab is asked for animation frames, which nobody sees sixty times a second.

- **within the bars**: tabs whose answer was complete, at most a second behind at its end, with no
  main-thread task over 350 ms and an INP of at most 200 ms.
- **browser**: processor time of all main threads together, over the clock's time: 100 % is one core.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import answers
from benchmarks.browser_probe import chromium
from benchmarks.chat_page import APP, Chat, open_tab, serve_chat
from benchmarks.closed_loop import BEHIND, FREEZE, INP
from benchmarks.interactions import Person, p75
from benchmarks.stream import GRACE_S
from benchmarks.table import Section, render, row

COUNTS = (5, 10, 20)
TOKENS = 900
RATE = 30.0


@dataclass(frozen=True, slots=True)
class TabFigures:
    """One tab; None: never."""

    complete: bool
    behind_s: float | None
    longest_task_ms: float
    inp_p75_ms: float | None

    @property
    def within(self) -> bool:
        inp_ms = self.inp_p75_ms
        return (
            self.complete
            and bool(BEHIND.met(self.behind_s))
            and self.longest_task_ms <= FREEZE.bar
            and (inp_ms is None or inp_ms <= INP.bar)
        )


@dataclass(frozen=True, slots=True)
class TabsFigures:
    """So many tabs at once."""

    tokens: int
    rate: float
    tabs: tuple[TabFigures, ...]
    server_share: float
    browser_share: float

    @property
    def within(self) -> int:
        return sum(tab.within for tab in self.tabs)


def measure_tabs(browser: Browser, count: int, tokens: int, rate: float) -> TabsFigures:
    """Let `count` tabs ask at once."""
    text, due_s = answers.answer(tokens), (tokens - 1) / rate
    told = {_question(number): text for number in range(count)}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(
            serve_chat(APP, answers.write_answers(Path(folder), told, rate))
        )
        chats = [stack.enter_context(open_tab(browser, server)) for _ in range(count)]
        people = [Person(chat.probe) for chat in chats]
        for chat in chats:
            chat.probe.look_at_every_frame(False)
            chat.probe.main_thread_cpu_s()
            chat.probe.watch("end", answers.end_mark(tokens))
            chat.probe.reset()
        began_at, cpu_s, busy_s = time.time(), server.cpu_s(), _busy_s(chats)
        for number, chat in enumerate(chats):
            chat.ask(_question(number))
        while time.time() < began_at + due_s:
            for person in people:
                person.press()
        span_s = time.time() - began_at
        cpu_s, busy_s = server.cpu_s() - cpu_s, _busy_s(chats) - busy_s
        tabs = []
        for number, (chat, person) in enumerate(zip(chats, people, strict=True)):
            ended_at = chat.probe.wait_seen("end", began_at + due_s + GRACE_S - time.time())
            times = server.stream_times(_question(number))
            tabs.append(
                TabFigures(
                    complete=ended_at is not None
                    and not answers.missing_blocks(text, chat.shown()),
                    behind_s=ended_at - times.first - due_s if ended_at and times else None,
                    longest_task_ms=max(chat.probe.read().tasks_ms, default=0.0),
                    inp_p75_ms=p75([*person.felt().keys_ms, *person.felt().clicks_ms]),
                )
            )
        return TabsFigures(tokens, rate, tuple(tabs), cpu_s / span_s, busy_s / span_s)


def _question(number: int) -> str:
    return f"tab {number} asks."


def _busy_s(chats: Sequence[Chat]) -> float:
    return sum(chat.probe.main_thread_cpu_s() for chat in chats)


def tabs_section(figures: TabsFigures) -> Section:
    f = figures
    behind_s = [tab.behind_s for tab in f.tabs if tab.behind_s is not None]
    inp_ms = [tab.inp_p75_ms for tab in f.tabs if tab.inp_p75_ms is not None]

    return Section(
        f"{len(f.tabs)} tabs at once, {f.tokens:,} tokens each at {f.rate:g} tok/s",
        (
            row(
                "within the bars",
                {APP: float(f.within)},
                lambda within: f"{within:.0f} of {len(f.tabs)}",
            ),
            row("complete", {APP: sum(tab.complete for tab in f.tabs)}, "{:.0f}".format),
            row("behind, worst", {APP: max(behind_s, default=None)}, "{:.2f} s".format),
            row(
                "longest task, worst",
                {APP: max(t.longest_task_ms for t in f.tabs)},
                "{:.0f} ms".format,
            ),
            row("INP p75, worst", {APP: max(inp_ms, default=None)}, "{:.0f} ms".format),
            row("server CPU", {APP: 100 * f.server_share}, "{:.0f} % of a core".format),
            row("browser, main threads", {APP: 100 * f.browser_share}, "{:.0f} % of a core".format),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Many tabs on one process.")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)))
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--rate", type=float, default=RATE)
    chosen = parser.parse_args()
    with chromium() as browser:
        for count in map(int, chosen.counts.split(",")):
            figures = measure_tabs(browser, count, chosen.tokens, chosen.rate)
            print(render([tabs_section(figures)]), flush=True)


if __name__ == "__main__":
    main()
