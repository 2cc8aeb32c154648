"""What the answer cache costs a question, and how soon a kept answer is there.

100,000 answers are kept in SQLite, 10,000 of them of one partition with the vectors of questions.
The scripted backend says its first text after 0.2 s. Everything goes through `Chat`, as the page
does it: from asking to the first text, one question after the other, in turns without the cache,
with it and not there (exact; exact and similar), and there. What the cache adds is the difference
of neighbours. In the page it is from Enter to the painted text, beside a model that takes no time:
what is left is the page's own. The file is in the system's cache; the embedding is MiniLM on the
CPU.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.browser_probe import open_page
from benchmarks.chat_page import APP, SCRIPTS
from benchmarks.chat_page import Chat as Page
from benchmarks.server import serve
from benchmarks.table import Goal, Section, spread
from llm.answer_cache import AnswerCache
from llm.cache_key import cache_key
from llm.cache_sqlite import SqliteAnswerStore
from llm.cache_types import CachedAnswer, CacheKey
from llm.chat import Chat
from llm.conversation_database import ConversationDatabase
from llm.conversations import ConversationStore
from llm.embedding import EmbeddingModel
from llm.registry import JobRegistry
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from llm.settings import Settings
from llm.similar_answers import SimilarAnswers
from llm.types import CacheUse, Delta, GenerationRequest, Message, SamplingParams, Usage

OWNER = "local"
PREFILL_S = 0.2
PATIENCE_S = 120.0
_TEXT = "An answer of some length, as they are. " * 20
_PARAMS = SamplingParams(temperature=0)


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """Milliseconds, one each round; what is added is beside the question without the cache.

    Args:
        entries: answers kept.
        candidates: of them in the partition that is searched.
        fill_s: what keeping them took.
    """

    entries: int
    candidates: int
    fill_s: float
    hit_ms: list[float]
    exact_miss_adds_ms: list[float]
    similar_miss_adds_ms: list[float]
    without_ms: list[float]
    screen_hit_ms: list[float] = field(default_factory=list)
    screen_instant_ms: list[float] = field(default_factory=list)


def measure_cache(browser: Browser, entries: int, candidates: int, rounds: int) -> CacheFigures:
    """Fill a store and ask, without the page and in it."""
    with tempfile.TemporaryDirectory() as folder:
        figures = _measure(Path(folder), entries, candidates, rounds)
        hit_ms, instant_ms = _on_screen(browser, Path(folder), rounds)
        return replace(figures, screen_hit_ms=hit_ms, screen_instant_ms=instant_ms)


def _on_screen(browser: Browser, folder: Path, rounds: int) -> tuple[list[float], list[float]]:
    """From Enter to the painted answer: kept ones, and those of a model that takes no time."""
    scripts = folder / "scripts.json"
    scripts.write_text(json.dumps({"default": {"text": "You asked: {question}"}}), "utf-8")
    environment = {
        "STEADY_CHAT_BACKENDS": "scripted",
        "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
        "STEADY_CHAT_LANGUAGE": "en",
        "STEADY_CHAT_TEMPERATURE": "0",
        "STEADY_CHAT_DATA_DIR": str(folder),
        "STEADY_CHAT_CACHE_MAX_MB": "8000",
    }
    with serve(SCRIPTS[APP], environment) as server, open_page(browser, server.url) as probe:
        page = Page(server, probe)
        probe.page.get_by_test_id("stChatInputTextArea").wait_for()
        page.settle()
        _painted_ms(page, "What is a kept one?")
        hit_ms, instant_ms = [], []
        for number in range(rounds):
            instant_ms.append(_painted_ms(page, f"What is one of number {number}?"))
            hit_ms.append(_painted_ms(page, "What is a kept one?"))
        return hit_ms, instant_ms


def _painted_ms(page: Page, question: str) -> float:
    within = page.probe.page
    within.locator(".st-key-new_chat button").click()
    within.wait_for_function("!document.querySelector('.steady-question')")
    page.settle()
    page.probe.watch("answer", f"You asked: {question}")
    sent_s = page.ask(question)
    seen_s = page.probe.wait_seen("answer", PATIENCE_S, every_ms=50)
    assert seen_s is not None
    return 1000 * (seen_s - sent_s)


def _measure(folder: Path, entries: int, candidates: int, rounds: int) -> CacheFigures:
    model = EmbeddingModel.from_settings(Settings())
    if model is None or model.wait(PATIENCE_S) is None:
        raise RuntimeError("MiniLM can't be had")
    backend = ScriptedBackend(Script(text="{question}", prefill_s=PREFILL_S))
    store = SqliteAnswerStore(folder / "answers.sqlite3", 2**33)
    begun_s = time.monotonic()
    _fill(store, backend, model, entries, candidates)
    fill_s = time.monotonic() - begun_s
    cache = AnswerCache(lambda: store, similar=partial(SimilarAnswers, model=model))
    cache.flush(PATIENCE_S)
    database = ConversationDatabase(f"sqlite:///{folder / 'conversations.sqlite3'}", "benchmark")
    registry = JobRegistry()
    chat = Chat(ConversationStore(database), registry, {"scripted": lambda: backend}, cache=cache)
    exact, similar = CacheUse(OWNER), CacheUse(OWNER, similar=True)
    try:
        ask: Callable[[str, CacheUse | None], float] = partial(_first_text_ms, chat, registry)
        for use in (None, exact, similar):
            ask(f"What is a warm-up? {use}", use)
        hit_ms, without_ms, exact_adds, similar_adds = [], [], [], []
        for number in range(rounds):
            hit_ms.append(ask(f"What is number {number}?", exact))
            before = ask(f"How does a heat pump number {number} work?", None)
            with_exact = ask(f"How does a wind mill number {number} work?", exact)
            with_similar = ask(f"How does a steam engine number {number} work?", similar)
            after = ask(f"How does a water wheel number {number} work?", None)
            without = (before + after) / 2
            without_ms.append(without)
            exact_adds.append(with_exact - without)
            similar_adds.append(with_similar - without)
    finally:
        chat.close()
        cache.close()
        model.close()
    return CacheFigures(entries, candidates, fill_s, hit_ms, exact_adds, similar_adds, without_ms)


def _fill(
    store: SqliteAnswerStore,
    backend: ScriptedBackend,
    model: EmbeddingModel,
    entries: int,
    candidates: int,
) -> None:
    embedder = model.ready()
    assert embedder is not None
    now_s = time.time()
    vector = embedder.embed(["What is number 0?"])[0].tobytes()
    for number in range(entries):
        question = f"What is number {number}?"
        request = GenerationRequest((Message("user", question),), _PARAMS, cache=CacheUse(OWNER))
        fingerprint = backend.fingerprint(request)
        assert fingerprint is not None
        key = cache_key(fingerprint, request, shared=False)
        told = (vector, embedder.name) if number < candidates else (b"", "")
        if number >= candidates:
            partition = hashlib.blake2b(str(number).encode(), digest_size=20).hexdigest()
            key = CacheKey(key.digest, partition, key.scope)
        answer = CachedAnswer(
            key,
            question,
            tuple(Delta(word) for word in _TEXT.split()),
            Usage(20, 160),
            "scripted",
            "",
            now_s,
            now_s + 86_400,
            5.0,
        )
        store.put(answer, *told)


def _first_text_ms(chat: Chat, registry: JobRegistry, question: str, use: CacheUse | None) -> float:
    here = chat.open(OWNER, None)
    begun_s = time.monotonic()
    chat.ask(here, question, person=OWNER, backend="scripted", params=_PARAMS, cache=use)
    job = registry.get(here)
    if job is None:  # over already
        return 1000 * (time.monotonic() - begun_s)
    version = -1
    while True:
        snapshot = job.wait(version, 0.5)
        if snapshot.text or snapshot.done:
            first_ms = 1000 * (time.monotonic() - begun_s)
            break
        version = snapshot.version
    while not snapshot.done:
        snapshot = job.wait(snapshot.version, 0.5)
    return first_ms


def cache_section(figures: CacheFigures) -> Section:
    """The figures as a table's rows."""
    middle = statistics.median(figures.without_ms)
    return Section(
        f"answer cache, {figures.entries:,} kept, {figures.candidates:,} compared",
        (
            spread("a kept answer's first text", figures.hit_ms, "{:.1f} ms", Goal(50, " ms")),
            spread("exact miss adds", figures.exact_miss_adds_ms, "{:.1f} ms", Goal(5, " ms")),
            spread("similar miss adds", figures.similar_miss_adds_ms, "{:.1f} ms", Goal(60, " ms")),
            spread("painted after Enter, kept", figures.screen_hit_ms, "{:.0f} ms"),
            spread("painted after Enter, no wait", figures.screen_instant_ms, "{:.0f} ms"),
            spread(f"without ({middle:.0f} ms)", figures.without_ms, "{:.1f} ms"),
        ),
    )
