"""Figures are kept beside every answer's path: on both databases, bounded, and through faults."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from llm import metrics_log
from llm.answer_figures import AnswerFigures
from llm.chat import Chat
from llm.conversation_database import ConversationDatabase
from llm.conversation_tables import answer_figures, process_samples
from llm.conversation_tree import ConversationKey
from llm.conversations import ConversationStore
from llm.database import Database
from llm.metrics_log import DAY_S, KEPT_S, MetricsLog
from llm.registry import JobRegistry
from llm.screen import Screen, ScreenReport
from llm.screen_figures import ScreenFigures
from llm.types import SamplingParams
from tests.driven_backend import PATIENCE_S, DrivenBackend, let_go
from tests.servers.postgres import PostgresServer

NOW_S = 1_764_480_000.0
WHOLE = AnswerFigures(
    turn_id="one",
    ended_s=NOW_S,
    backend="vllm",
    model="模型 m",
    server="gpu-1",
    finish="length",
    cached="exact",
    prompt_tokens=7,
    completion_tokens=4,
    chars=16,
    waited_s=0.5,
    ttft_s=0.25,
    decode_s=1.5,
    tpot_ms=500.0,
    itl_p50_ms=250.0,
    itl_p95_ms=1000.0,
)
SCREEN = ScreenFigures(
    longest_freeze_ms=120.5, inp_ms=80.25, lag_ms=30.0, frames=12, bytes_sent=3_000_000_000
)


@contextmanager
def log_at(url: str, **given: Any) -> Iterator[MetricsLog]:
    database = Database(url)
    made = MetricsLog(database, clock=lambda: NOW_S, retry_s=0.05, **given)
    try:
        yield made
    finally:
        made.close()
        database.close()


def rows(url: str, table: Any = answer_figures) -> list[dict[str, Any]]:
    """What another process reads."""
    database = Database(url)
    try:
        with database.reading() as connection:
            found = connection.execute(select(table).order_by(table.c.row)).mappings()
            return [{name: row[name] for name in row if name != "row"} for row in found]
    finally:
        database.close()


def kept(log: MetricsLog) -> None:
    deadline_s = time.monotonic() + 3 * PATIENCE_S
    while not log.flush(1):
        assert time.monotonic() < deadline_s


def until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 3 * PATIENCE_S
    while not true():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def test_an_answers_figures_are_kept_whole(database_url: str) -> None:
    with log_at(database_url) as log:
        log.answered(WHOLE)
        kept(log)
    assert rows(database_url) == [{**asdict(WHOLE), **asdict(ScreenFigures())}]


@pytest.mark.parametrize("first", ["answered", "seen"])
def test_the_screens_word_may_come_first_or_last(database_url: str, first: str) -> None:
    with log_at(database_url) as log:
        calls = [lambda: log.answered(WHOLE), lambda: log.seen("one", SCREEN)]
        for call in calls if first == "answered" else calls[::-1]:
            call()
            kept(log)  # each in a transaction of its own
    assert rows(database_url) == [{**asdict(WHOLE), **asdict(SCREEN)}]


def test_both_in_one_transaction_and_in_either_order(database_url: str) -> None:
    with log_at(database_url) as log:
        log.seen("one", SCREEN)
        log.answered(WHOLE)
        log.answered(replace(WHOLE, turn_id="two"))
        log.seen("two", SCREEN)
        kept(log)
    assert [row["frames"] for row in rows(database_url)] == [12, 12]
    assert {row["finish"] for row in rows(database_url)} == {"length"}


TABS = (
    SCREEN,
    ScreenFigures(longest_freeze_ms=500.0, blocked_ms=10.0, frames=3, bytes_sent=90),
    ScreenFigures(longest_freeze_ms=50.0, inp_ms=300.0, lag_ms=10.0, frames=7, bytes_sent=70),
)
WORST = ScreenFigures(500.0, 300.0, 10.0, 30.0, 3, 90)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_of_several_tabs_the_worst_is_kept(order: tuple[int, ...]) -> None:
    first, second, third = (TABS[at] for at in order)
    assert first.worst(second).worst(third) == WORST
    assert ScreenFigures().worst(first) == first.worst(ScreenFigures()) == first


def test_a_screens_later_word_takes_the_place_of_its_earlier(database_url: str) -> None:
    later = replace(SCREEN, blocked_ms=9.0, frames=20)
    assert SCREEN.worst(later) == later
    with log_at(database_url) as log:
        log.answered(WHOLE)
        log.seen("one", SCREEN)
        kept(log)
        log.seen("one", later)
        kept(log)
    assert rows(database_url) == [{**asdict(WHOLE), **asdict(later)}]


@pytest.mark.parametrize("at_once", [True, False])
def test_of_several_tabs_the_database_keeps_the_worst(database_url: str, at_once: bool) -> None:
    with log_at(database_url) as log, log._changed if at_once else nullcontext():
        for number, order in enumerate(permutations(TABS)):
            for screen in order:
                log.seen(f"turn {number}", screen)
                if not at_once:
                    kept(log)
            log.answered(replace(WHOLE, turn_id=f"turn {number}"))
        kept(log)
    told = rows(database_url)
    assert len(told) == 6
    for row in told:
        assert {name: row[name] for name in asdict(WORST)} == asdict(WORST)


def test_a_receipt_has_the_worst_of_several_tabs(database_url: str) -> None:
    with log_at(database_url) as log, DrivenBackend() as backend:
        chat = talk(database_url, log, backend)
        key = ask(chat, backend, "What?")
        (turn,) = chat.turns(key)
        for busy_ms, inp_ms in ((200, 0), (700, 40), (90, 250)):
            screen = Screen()
            screen.follow(turn.turn_id)
            screen.frame(busy_ms)
            screen.credit.sent(busy_ms)
            screen.hear(ScreenReport(stamp=1))
            screen.hear(ScreenReport(stamp=1, freeze_ms=busy_ms, inp_ms=inp_ms))
            chat.seen(key, screen)
        (turn,) = chat.turns(key)
        chat.close()
    (row,) = rows(database_url)
    assert turn.receipt is not None
    assert turn.receipt.screen == ScreenFigures(700, 250, 0, row["lag_ms"], 1, 700)
    assert {name: row[name] for name in asdict(ScreenFigures())} == asdict(turn.receipt.screen)


@pytest.mark.parametrize("turn_id", ["", "x" * 65, "a\0b"])
def test_an_id_that_can_be_nobodys_is_passed_over(database_url: str, turn_id: str) -> None:
    with log_at(database_url) as log:
        log.seen(turn_id, SCREEN)
        log.answered(WHOLE)
        kept(log)
    assert [row["turn_id"] for row in rows(database_url)] == ["one"]


def test_what_no_column_holds_is_unknown_and_hinders_nobody(database_url: str) -> None:
    odd = replace(
        WHOLE,
        turn_id="odd",
        model="a\0b\ud800",
        ttft_s=float("nan"),
        decode_s=float("inf"),
        chars=2**40,
        error="E" * 100,
    )
    with log_at(database_url) as log:
        log.answered(odd)
        log.answered(WHOLE)
        kept(log)
    told = {row["turn_id"]: row for row in rows(database_url)}
    assert (told["odd"]["ttft_s"], told["odd"]["decode_s"], told["odd"]["chars"]) == (None,) * 3
    assert told["odd"]["model"].startswith("ab")
    assert told["odd"]["error"] == "E" * 64
    assert told["one"]["ttft_s"] == 0.25


def test_the_process_is_sampled_by_itself(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_log, "SAMPLE_S", 0.05)
    asked = threading.Semaphore(0)

    def gauges() -> tuple[int, int]:
        asked.release()
        return 3, 2**33

    with log_at(database_url, gauges=gauges) as log:
        log.start()
        for _ in range(2):
            assert asked.acquire(timeout=PATIENCE_S)
        kept(log)
    sampled = rows(database_url, process_samples)
    assert len(sampled) >= 1
    assert sampled[0] == {"at_s": NOW_S, "queue_depth": 3, "memory_bytes": 2**33}


def test_gauges_that_fail_cost_nothing_but_themselves(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_log, "SAMPLE_S", 0.05)
    failed = threading.Event()

    def gauges() -> tuple[int, int]:
        failed.set()
        raise OSError("no such process")

    with log_at(database_url, gauges=gauges) as log:
        log.start()
        assert failed.wait(PATIENCE_S)
        log.answered(WHOLE)
        kept(log)
    assert len(rows(database_url)) == 1


def test_what_is_old_or_too_much_goes(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_log, "MOST_ANSWERS", 40)
    monkeypatch.setattr(metrics_log, "_BATCH", 7)
    monkeypatch.setattr(metrics_log, "SAMPLE_S", 0.02)  # and so it is soon looked through
    database = Database(database_url)
    with database.writing() as connection:
        metrics_log._write(
            connection,
            [
                *(
                    replace(WHOLE, turn_id=f"old {n}", ended_s=NOW_S - KEPT_S - 1)
                    for n in range(20)
                ),
                metrics_log._Seen("never answered", NOW_S - DAY_S - 1, SCREEN),
                metrics_log._Seen("not yet answered", NOW_S - 60, SCREEN),
                *(replace(WHOLE, turn_id=f"new {n}") for n in range(50)),
                metrics_log.ProcessSample(NOW_S - KEPT_S - 1, 0, 0),
                metrics_log.ProcessSample(NOW_S, 0, 0),
            ],
        )
    database.close()
    with log_at(database_url) as log:
        log.start()
        deadline_s = time.monotonic() + 3 * PATIENCE_S
        while len(left := rows(database_url)) > 40:
            assert time.monotonic() < deadline_s
    # The screen's word that waits for its answer was written last.
    newest = [*(f"new {n}" for n in range(11, 50)), "not yet answered"]
    assert [row["turn_id"] for row in left] == newest
    assert [row["at_s"] for row in rows(database_url, process_samples)] == [NOW_S]


def test_memory_is_bounded_while_nothing_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    with (
        caplog.at_level(logging.WARNING),
        log_at(f"sqlite:///{tmp_path}/file/kept.sqlite3") as log,
    ):
        for number in range(metrics_log.MOST_PENDING + 300):
            log.answered(replace(WHOLE, turn_id=f"turn {number}"))
        for _ in range(5):  # and further attempts
            assert not log.flush(0.1)
        assert len(log._pending) <= metrics_log.MOST_PENDING
    assert len(caplog.records) == 1, "it is said once"
    assert "can't be kept" in caplog.messages[0]


def test_what_waits_is_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_log, "MOST_PENDING", 5)
    url = f"sqlite:///{tmp_path / 'kept.sqlite3'}"
    with log_at(url) as log:
        log.answered(replace(WHOLE, turn_id="kept"))
        kept(log)
        holder = Database(url)
        with holder.writing():
            log.answered(replace(WHOLE, turn_id="oldest"))
            until(lambda: log._writing and not log._pending)  # and it waits for the holder
            for number in range(5):
                log.answered(replace(WHOLE, turn_id=f"turn {number}"))
            until(lambda: log._in_trouble)
        holder.close()
        kept(log)
    assert [row["turn_id"] for row in rows(url)] == ["kept", *(f"turn {n}" for n in range(5))]


def test_what_the_database_refuses_again_and_again_isnt_in_the_way_for_ever(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(metrics_log._CUT, "backend", 100)  # longer than its column
    with log_at(database_url) as log:
        log.answered(replace(WHOLE, turn_id="two", backend="b" * 100))
        kept(log)
        log.answered(WHOLE)
        kept(log)
    assert "one" in [row["turn_id"] for row in rows(database_url)]


def test_the_folder_goes_away_and_comes_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, away = tmp_path / "here", tmp_path / "away"
    url = f"sqlite:///{folder / 'kept.sqlite3'}"
    with log_at(url) as log:
        log.answered(WHOLE)
        kept(log)
        folder.rename(away)
        log.answered(replace(WHOLE, turn_id="two"))
        assert not log.flush(PATIENCE_S)
        away.rename(folder)
        kept(log)
    assert [row["turn_id"] for row in rows(url)] == ["one", "two"]
    assert len([each for each in caplog.messages if "can't be kept" in each]) == 1


def talk(url: str, log: MetricsLog, backend: DrivenBackend) -> Chat:
    store = ConversationStore(ConversationDatabase(url, "talk"))
    return Chat(store, JobRegistry(), {"driven": lambda: backend}, metrics=log)


def ask(chat: Chat, backend: DrivenBackend, question: str) -> ConversationKey:
    key = chat.open("somebody", None)
    chat.ask(key, question, person="somebody", backend="driven", params=SamplingParams())
    job, stream = chat.job(key), backend.next_stream()
    stream.answer(f"{question}!")
    let_go(job)  # type: ignore[arg-type]
    assert chat.turns(key)[0].text == f"{question}!"
    return key


def test_every_answer_of_the_chat_is_measured(database_url: str) -> None:
    with log_at(database_url) as log, DrivenBackend() as backend:
        chat = talk(database_url, log, backend)
        ask(chat, backend, "What?")
        key = chat.open("somebody", None)
        chat.ask(key, "Stop?", person="somebody", backend="driven", params=SamplingParams())
        job, stream = chat.job(key), backend.next_stream()
        stream.say("ha")
        chat.stop(key)
        let_go(job)  # type: ignore[arg-type]
        chat.ask(key, "Who?", person="somebody", backend="nobody", params=SamplingParams())
        chat.close()
    told = [
        (row["backend"], row["finish"], row["error"], row["chars"]) for row in rows(database_url)
    ]
    assert sorted(told) == [
        ("driven", "abort", "", 2),
        ("driven", "stop", "", 6),
        ("nobody", "error", "InternalError", None),
    ]
    written = str(rows(database_url))
    assert "What" not in written
    assert "somebody" not in written


def test_what_ends_with_the_chat_is_kept(database_url: str) -> None:
    with log_at(database_url) as log, DrivenBackend() as backend:
        chat = talk(database_url, log, backend)
        key = chat.open("somebody", None)
        chat.ask(key, "Why?", person="somebody", backend="driven", params=SamplingParams())
        backend.next_stream().say("Be")
        chat.close()
    assert [(row["finish"], row["error"]) for row in rows(database_url)] == [
        ("error", "ShuttingDownError")
    ]


def test_a_log_that_fails_costs_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "my-diary-page"

    def fails(figures: AnswerFigures) -> None:
        raise RuntimeError(secret)

    url = f"sqlite:///{tmp_path / 'kept.sqlite3'}"
    with log_at(url) as log, DrivenBackend() as backend:
        monkeypatch.setattr(log, "answered", fails)
        chat = talk(url, log, backend)
        ask(chat, backend, "One?")
        ask(chat, backend, "Two?")
        chat.close()
    assert "couldn't be kept" in caplog.text
    assert secret not in caplog.text


def test_the_server_is_killed_under_way_and_answers_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = PostgresServer()
    try:
        server.start()
        url = server.new_database()
        with log_at(url) as log, DrivenBackend() as backend:
            chat = talk(url, log, backend)
            ask(chat, backend, "before")
            kept(log)
            server.kill()
            began_s = time.monotonic()
            for question in ("during", "and once more"):
                ask(chat, backend, question)
            log.flush(PATIENCE_S)
            assert time.monotonic() - began_s < 2 * PATIENCE_S
            server.start()
            kept(log)
            ask(chat, backend, "after")
            kept(log)
            chat.close()
        assert len(rows(url)) == 4
        assert len([each for each in caplog.messages if "can't be kept" in each]) <= 1
    finally:
        server.remove()


def test_somebody_holds_the_file_and_no_answer_waits_for_it(tmp_path: Path) -> None:
    file = tmp_path / "kept.sqlite3"
    url = f"sqlite:///{file}"
    with log_at(url) as log:
        log.answered(WHOLE)
        kept(log)
        holder = Database(url)
        with holder.writing():
            began_s = time.monotonic()
            for number in range(200):
                log.answered(replace(WHOLE, turn_id=f"turn {number}"))
                log.seen(f"turn {number}", SCREEN)
            assert time.monotonic() - began_s < 1, "a write waits for a second, and nobody here"
        holder.close()
        kept(log)
    assert len(rows(url)) == 201
