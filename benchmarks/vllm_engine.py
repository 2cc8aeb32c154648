"""What the app adds to a real vLLM: tok/s and TTFT beside the bare openai client; how soon Stop frees.

    python -m benchmarks.vllm_engine

vLLM runs beside it, on the same cores, with the embedded model. Greedy, so that all say the same.

- **bare**: `openai.OpenAI` on this thread, reading chunk by chunk. **app**: the backend as the app
  makes it, in a `GenerationJob`, read by a waiting thread as the page does. Both in this process,
  in turns (ABBA), after one round that isn't counted.
- **app / bare** and **added TTFT** are medians over the rounds, each round's app against its own
  bare; in brackets the lowest and the highest.
- **tok/s**: completion tokens after the first, as the server counts them, over the time from the
  first to the end. **TTFT**: from the call to the first text.
- **through the page**: what the receipt under an answer in the browser says; another process,
  beside a Streamlit server and a browser.
- **Stop to idle**: from the press of Stop in the browser until vLLM's own /metrics say that it
  works on nothing; in mid-answer, and while it reads a long prompt.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from benchmarks.beside_bare import Run, added_ttft_ms, in_turns, speed_ratios, through_a_job
from benchmarks.browser_probe import chromium, open_page
from benchmarks.chat_page import APP, PAGE_TIMEOUT_S, SCRIPTS
from benchmarks.server import Server, serve
from benchmarks.table import Goal, Section, render, spread
from benchmarks.through_page import through_the_page
from tests.servers.real_server import WINDOW_TOKENS, RealServer, vllm_server

QUESTION = "Write a long story about a lighthouse keeper who learns to paint the sea."
LONG_PROMPT = "word " * (WINDOW_TOKENS - 600)
STOP_TIMES = 3
IDLE_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class VllmFigures:
    """See the module's docstring; `bare` and `app` are pairs, in the order they were run."""

    bare: tuple[Run, ...]
    app: tuple[Run, ...]
    through_page: tuple[Run, ...]
    stop_in_answer_s: tuple[float, ...]
    stop_in_prompt_s: tuple[float, ...]


def measure_vllm(tokens: int, rounds: int, browser: Browser) -> VllmFigures:
    """Start vLLM, installed first where it isn't yet, and measure."""
    with tempfile.TemporaryDirectory(prefix="steady-chat-bench-") as folder:
        vllm = vllm_server(Path(folder))
        vllm.start()
        try:
            vllm.wait_until_ready()
            bare, app = _compare(vllm, tokens, rounds)
            pages = through_the_page(browser, _page_settings(vllm, tokens), QUESTION)
            with serve(SCRIPTS[APP], _page_settings(vllm, WINDOW_TOKENS // 2)) as server:
                in_answer = [_stop(browser, server, vllm, QUESTION) for _ in range(STOP_TIMES)]
                in_prompt = [_stop(browser, server, vllm, LONG_PROMPT) for _ in range(STOP_TIMES)]
        finally:
            vllm.stop()
    return VllmFigures(bare, app, pages, tuple(in_answer), tuple(in_prompt))


def vllm_section(figures: VllmFigures) -> Section:
    """The rows of the table."""
    bare, app, page = (
        [run.tokens_per_s for run in runs]
        for runs in (figures.bare, figures.app, figures.through_page)
    )
    bare_ms, page_ms = (
        [1000 * run.ttft_s for run in runs] for runs in (figures.bare, figures.through_page)
    )
    in_answer_ms, in_prompt_ms = (
        [1000 * took_s for took_s in times]
        for times in (figures.stop_in_answer_s, figures.stop_in_prompt_s)
    )
    ratios = speed_ratios(figures.bare, figures.app)
    added_ms = added_ttft_ms(figures.bare, figures.app)
    return Section(
        f"a real vLLM, {len(bare)} rounds; in brackets the lowest and the highest",
        (
            spread("bare openai client, tok/s", bare, "{:.1f}"),
            spread("app, tok/s", app, "{:.1f}"),
            spread("app / bare", ratios, "{:.3f}", Goal(0.97, at_least=True)),
            spread("TTFT, bare", bare_ms, "{:.0f} ms"),
            spread("added TTFT", added_ms, "{:.0f} ms", Goal(100, " ms")),
            spread("through the page, tok/s", page, "{:.1f}"),
            spread("through the page, TTFT", page_ms, "{:.0f} ms"),
            spread("Stop to idle, in mid-answer", in_answer_ms, "{:.0f} ms", Goal(1000, " ms")),
            spread("Stop to idle, in mid-prompt", in_prompt_ms, "{:.0f} ms", Goal(1000, " ms")),
        ),
    )


def _page_settings(vllm: RealServer, max_tokens: int) -> dict[str, str]:
    return {
        "STEADY_CHAT_BACKENDS": "vllm",
        "STEADY_CHAT_VLLM_BASE_URL": vllm.url,
        "STEADY_CHAT_VLLM_API_KEY": vllm.key,
        "STEADY_CHAT_TEMPERATURE": "0",
        "STEADY_CHAT_MAX_TOKENS": str(max_tokens),
        "STEADY_CHAT_LANGUAGE": "en",
    }


def _compare(vllm: RealServer, tokens: int, rounds: int) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """Bare and app in turns."""
    from llm.types import SamplingParams

    params = SamplingParams(temperature=0, max_tokens=tokens)
    with _clients(vllm) as (client, backend):
        return in_turns(
            lambda: _bare(client, vllm.model, tokens),
            lambda: through_a_job(backend, QUESTION, params),
            rounds,
        )


@contextmanager
def _clients(vllm: RealServer) -> Iterator[tuple[Any, Any]]:
    from openai import OpenAI

    from llm.patient_backend import PatientBackend
    from llm.vllm_backend import VllmBackend

    backend = PatientBackend(VllmBackend(vllm.url, api_key=vllm.key))
    try:
        with OpenAI(base_url=vllm.url, api_key=vllm.key, max_retries=0) as client:
            yield client, backend
    finally:
        backend.close()


def _bare(client: Any, model: str, tokens: int) -> Run:
    first_s: float | None = None
    made = 0
    started_s = time.perf_counter()
    with client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": QUESTION}],
        temperature=0,
        max_tokens=tokens,
        stream=True,
        stream_options={"include_usage": True},
    ) as stream:
        for chunk in stream:
            if first_s is None and chunk.choices and chunk.choices[0].delta.content:
                first_s = time.perf_counter()
            if chunk.usage is not None:
                made = chunk.usage.completion_tokens
    assert first_s is not None
    return Run(made, (made - 1) / (time.perf_counter() - first_s), first_s - started_s)


def _stop(browser: Browser, server: Server, vllm: RealServer, question: str) -> float:
    """Ask, press Stop, and wait until the server is idle; the seconds that took."""
    with open_page(browser, server.url) as probe:
        page = probe.page
        field = page.get_by_test_id("stChatInputTextArea")
        field.wait_for(timeout=PAGE_TIMEOUT_S * 1000)
        field.fill(question)
        field.press("Enter")
        _wait(lambda: vllm.requests_held() == 1, PAGE_TIMEOUT_S)
        stop = page.locator(".st-key-stop button")
        stop.wait_for(timeout=PAGE_TIMEOUT_S * 1000)
        if question != LONG_PROMPT:
            answer = page.locator('[class*="st-key-answer-"]', has_text=" ")
            answer.wait_for(timeout=PAGE_TIMEOUT_S * 1000)
        stop.click(no_wait_after=True)
        pressed_at = probe.read().input_at
        assert pressed_at is not None
        _wait(lambda: vllm.requests_held() == 0, IDLE_TIMEOUT_S)
        return time.time() - pressed_at


def _wait(condition: Any, timeout_s: float) -> None:
    """Look often: how often is how exact the figure is."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not within {timeout_s} s")
        time.sleep(0.005)


def main() -> None:
    with chromium() as browser:
        print(render([vllm_section(measure_vllm(128, 6, browser))]))


if __name__ == "__main__":
    main()
