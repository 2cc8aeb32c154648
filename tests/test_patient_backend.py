"""What is done where a server doesn't answer at once, against real small servers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from llm.errors import (
    ConnectionLostError,
    LLMError,
    NoAnswerError,
    ServerBusyError,
    ServerFaultError,
    ServerKeyError,
    ServerProxyTimeoutError,
    ServerStartingError,
    ServerUnreachableError,
)
from llm.job import GenerationJob, Snapshot
from llm.patient_backend import BUSY_TRIES, LONGEST_PAUSE_S, PatientBackend
from llm.server_state import ServerState
from llm.types import CancelToken, Delta, Finish, GenerationRequest, Message, Notice
from llm.vllm_backend import VllmBackend
from tests.protocol_server import MODEL, Exchange, Handler, ProtocolServer, refusing, saying

Item = Delta | Notice | Finish
LOADING = refusing(503, {"error": {"code": 503, "message": "Loading model"}})


class Fleet:
    """Servers with a backend each; `patient` asks them."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self.servers: dict[str, ProtocolServer] = {}
        self.backends: dict[str, VllmBackend] = {}

    def server(self, name: str, **more: object) -> ProtocolServer:
        running = self._open.enter_context(ProtocolServer())
        self.servers[name] = running
        backend = VllmBackend(running.url, server=name, **more)  # type: ignore[arg-type]
        self.backends[name] = backend
        self._open.callback(backend.close)
        return running

    def back_again(self, name: str) -> ProtocolServer:
        """The server of that name, at its old address after it was stopped."""
        again = ProtocolServer()
        again.port = self.servers[name].port
        self.servers[name] = self._open.enter_context(again)
        return again

    def patient(self, name: str, *others: str, wait_s: float = 30.0) -> PatientBackend:
        rest = [self.backends[other] for other in others]
        return PatientBackend(self.backends[name], rest, wait_s=wait_s)

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that was away is looked for again at once, so that no test waits for it."""
    monkeypatch.setattr("llm.server_state.FAILED_FRESH_S", 0.05)
    monkeypatch.setattr("llm.patient_backend.LOOK_S", 0.02)
    monkeypatch.setattr("llm.patient_backend.AGAIN_S", 0.02)


def ask(question: str = "hi", model: str = "") -> GenerationRequest:
    return GenerationRequest((Message("user", question),), model=model)


class Reader:
    """Reads an answer on a thread of its own, as a job does."""

    def __init__(self, backend: PatientBackend, request: GenerationRequest | None = None) -> None:
        self.items: list[Item] = []
        self.error: LLMError | None = None
        self.cancel = CancelToken()
        self._news = threading.Condition()
        self._over = False
        self._backend = backend
        self._request = request or ask()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for item in self._backend.stream(self._request, self.cancel):
                with self._news:
                    self.items.append(item)
                    self._news.notify_all()
        except LLMError as error:
            self.error = error
        with self._news:
            self._over = True
            self._news.notify_all()

    def wait(self, condition: Callable[[], bool], timeout_s: float = 15.0) -> bool:
        with self._news:
            return self._news.wait_for(condition, timeout_s)

    def wait_for_notice(self, message_id: str) -> Notice:
        assert self.wait(lambda: any(said == message_id for said in self.said())), self.said()
        return next(n for n in self.notices() if n.reason and n.reason.message_id == message_id)

    def done(self) -> Reader:
        assert self.wait(lambda: self._over), f"it never ended: {self.items}"
        return self

    def notices(self) -> list[Notice]:
        return [item for item in self.items if isinstance(item, Notice)]

    def said(self) -> list[str]:
        """What the notices said, each once."""
        names = [notice.reason.message_id for notice in self.notices() if notice.reason]
        return list(dict.fromkeys(names))

    @property
    def text(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, Delta))

    @property
    def finish(self) -> Finish | None:
        last = self.items[-1] if self.items else None
        return last if isinstance(last, Finish) else None


def answered(backend: PatientBackend, request: GenerationRequest) -> Snapshot:
    """The end of a job that asks it."""
    job = GenerationJob("c", "p", backend, request, save=lambda snapshot: None)
    job.start()
    last = job.snapshot()
    while not last.done:
        before, last = last, job.wait(last.version, 15)
        assert last.version > before.version, "nothing came"
    return last


def first_then(times: int, first: Handler) -> Handler:
    """`first` for so many requests, an answer for each one after."""
    left = [times]

    async def handler(exchange: Exchange) -> None:
        left[0] -= 1
        await (first if left[0] >= 0 else saying(["here ", "now"]))(exchange)

    return handler


def test_an_answer_says_first_who_is_asked(fleet: Fleet) -> None:
    fleet.server("gpu-1", model=MODEL)
    reader = Reader(fleet.patient("gpu-1")).done()
    assert reader.items[0] == Notice(None, "gpu-1", MODEL, begins=True)
    assert reader.text == "Hello, world!"
    assert reader.finish is not None
    assert reader.finish.reason == "stop"


def test_the_model_that_was_picked_is_asked(fleet: Fleet) -> None:
    server = fleet.server("gpu-1")
    server.models = ["first", "second"]
    reader = Reader(fleet.patient("gpu-1"), ask(model="second")).done()
    assert reader.text == "Hello, world!"
    assert server.exchange().body["model"] == "second"
    assert reader.notices()[0].model == "second"


# Busy.


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_when_it_says(fleet: Fleet, status: int) -> None:
    server = fleet.server("gpu-1")
    server.when("hi", first_then(2, refusing(status, {}, retry_after="1")))
    began_s = time.monotonic()
    reader = Reader(fleet.patient("gpu-1")).done()
    assert reader.text == "here now"
    assert len(server.exchanges) == 3
    assert time.monotonic() - began_s >= 2
    told = [n.reason.values for n in reader.notices() if n.reason]
    assert told == [
        {"server": "gpu-1", "left": 1, "try": 2},
        {"server": "gpu-1", "left": 1, "try": 3},
    ]


def test_retry_after_may_be_a_date(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
    monkeypatch.setattr("llm.server_errors._now", lambda: now)
    server = fleet.server("gpu-1")
    date = "Mon, 30 Nov 2026 12:00:02 GMT"
    server.when("hi", first_then(1, refusing(503, {}, retry_after=date)))
    reader = Reader(fleet.patient("gpu-1")).done()
    assert reader.text == "here now"
    first = reader.wait_for_notice("notice-busy")
    assert first.reason is not None
    assert first.reason.values["left"] == 2


@pytest.mark.parametrize("told", ["-1", "garbage", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_a_retry_after_that_says_nothing_is_a_second(fleet: Fleet, told: str) -> None:
    server = fleet.server("gpu-1")
    server.when("hi", first_then(1, refusing(503, {}, retry_after=told)))
    reader = Reader(fleet.patient("gpu-1")).done()
    assert reader.text == "here now"
    assert [n.reason.values["left"] for n in reader.notices() if n.reason] == [1]


def test_stop_ends_the_pause_and_the_server_is_not_asked_again(fleet: Fleet) -> None:
    server = fleet.server("gpu-1")
    server.when("hi", refusing(429, {}, retry_after="60"))
    reader = Reader(fleet.patient("gpu-1"))
    reader.wait_for_notice("notice-busy")
    began_s = time.monotonic()
    reader.cancel.cancel()
    reader.done()
    assert time.monotonic() - began_s < 1
    assert reader.finish == Finish("abort")
    assert len(server.exchanges) == 1


def test_a_server_that_stays_busy_is_an_error_after_a_few_tries(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fleet.server("gpu-1")
    server.when("hi", refusing(429, {}))
    pauses: list[float | None] = []

    def no_time_passes(self: CancelToken, timeout_s: float | None = None) -> bool:
        pauses.append(timeout_s)
        return False

    monkeypatch.setattr(CancelToken, "wait", no_time_passes)
    reader = Reader(fleet.patient("gpu-1")).done()
    assert type(reader.error) is ServerBusyError
    assert len(server.exchanges) == BUSY_TRIES
    assert sum(p or 0 for p in pauses) == 1 + 2 + 4 + 8


@pytest.mark.parametrize("told", [str(LONGEST_PAUSE_S + 1), "99999999", "9" * 5000])
def test_a_pause_too_long_to_sit_through_is_an_error_at_once(fleet: Fleet, told: str) -> None:
    server = fleet.server("gpu-1")
    server.when("hi", refusing(429, {}, retry_after=told))
    reader = Reader(fleet.patient("gpu-1")).done()
    assert type(reader.error) is ServerBusyError
    assert len(server.exchanges) == 1


def test_a_busy_word_after_text_is_not_asked_again(fleet: Fleet) -> None:
    server = fleet.server("gpu-1")

    async def busy_later(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("so far")
        await exchange.event({"error": {"message": "too many", "code": 429}})

    server.when("hi", busy_later)
    reader = Reader(fleet.patient("gpu-1")).done()
    assert reader.text == "so far"
    assert type(reader.error) is ServerBusyError
    assert len(server.exchanges) == 1


@pytest.mark.parametrize("why", ["busy", "away"])
def test_the_model_is_named_all_the_while_and_after_stop(fleet: Fleet, why: str) -> None:
    server = fleet.server("gpu-1")
    server.models = ["first", "second"]
    patient = fleet.patient("gpu-1")
    Reader(patient, ask(model="first")).done()  # so that the first one is known by now
    if why == "busy":
        server.when("hi", refusing(429, {}, retry_after="60"))
    else:
        server.stop()
    job = GenerationJob("c", "p", patient, ask(model="second"), save=lambda snapshot: None)
    job.start()
    seen = []
    while not seen or seen[-1].notice is None:
        seen.append(job.wait(seen[-1].version if seen else -1, 10))
        assert len(seen) < 100
    assert (seen[-1].server, seen[-1].model) == ("gpu-1", "second")
    job.cancel()
    while not (last := job.wait(seen[-1].version, 10)).done:
        seen.append(last)
    assert last.finish == Finish("abort")
    assert (last.server, last.model) == ("gpu-1", "second")


# Starting, and coming back.


def test_a_server_that_still_loads_is_waited_for_and_said(fleet: Fleet) -> None:
    server = fleet.server("gpu-1")
    server.models_handler = LOADING
    server.when("hi", first_then(1, LOADING))
    patient = fleet.patient("gpu-1")
    reader = Reader(patient)
    notice = reader.wait_for_notice("notice-away")
    assert notice.reason is not None
    assert notice.reason.values["why"] == ServerStartingError(url=server.url).reason
    assert patient.status().phase == "starting"
    assert not reader.text
    server.models_handler = None
    # Its first word to this question was "loading" as well: what counts is that it answers.
    assert reader.done().text in ("here now", "Hello, world!")
    assert patient.status().ready


def test_a_server_that_is_not_there_yet_is_waited_for_with_its_sentence(fleet: Fleet) -> None:
    server = fleet.server("gpu-1")
    server.stop()
    reader = Reader(fleet.patient("gpu-1"))
    notice = reader.wait_for_notice("notice-away")
    assert notice.reason is not None
    assert notice.reason.values["why"] == ServerUnreachableError(url=server.url).reason
    fleet.back_again("gpu-1")
    assert reader.done().text == "Hello, world!"
    assert reader.error is None


def test_stop_ends_the_waiting_for_a_server(fleet: Fleet) -> None:
    fleet.server("gpu-1").stop()
    reader = Reader(fleet.patient("gpu-1"))
    reader.wait_for_notice("notice-away")
    reader.cancel.cancel()
    assert reader.done().finish == Finish("abort")


@pytest.mark.parametrize("wait_s", [0.0, 0.3])
def test_the_waiting_has_an_end(fleet: Fleet, wait_s: float) -> None:
    fleet.server("gpu-1").stop()
    began_s = time.monotonic()
    reader = Reader(fleet.patient("gpu-1", wait_s=wait_s)).done()
    assert type(reader.error) is ServerUnreachableError
    assert wait_s <= time.monotonic() - began_s < wait_s + 5


@pytest.mark.parametrize("form", ["502", "loading"])
def test_a_server_that_is_ready_and_fails_is_asked_ever_more_seldom_and_not_for_ever(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """A gateway lists its models, and any answer of another one of them makes it ready."""
    server = fleet.server("gpu-1")
    server.when("hi", LOADING if form == "loading" else refusing(502, ""))
    monkeypatch.setattr(ServerState, "fails", lambda self, error: self.answers())
    monkeypatch.setattr("llm.patient_backend.AGAIN_S", 1.0)
    monkeypatch.setattr("llm.patient_backend.LOOK_S", 0.25)
    clock = [1000.0]
    asked_s: list[float] = []

    def passes(self: CancelToken, timeout_s: float | None = None) -> bool:
        clock[0] += timeout_s or 0
        return False

    def ask_and_note(backend: VllmBackend, *args: object) -> object:
        asked_s.append(clock[0] - 1000.0)
        return stream(backend, *args)  # type: ignore[arg-type]

    stream = VllmBackend.stream
    monkeypatch.setattr(VllmBackend, "stream", ask_and_note)
    monkeypatch.setattr(CancelToken, "wait", passes)
    monkeypatch.setattr("llm.patient_backend.time", SimpleNamespace(monotonic=lambda: clock[0]))
    reader = Reader(fleet.patient("gpu-1", wait_s=40)).done()
    assert type(reader.error) is (ServerStartingError if form == "loading" else ServerFaultError)
    assert asked_s == [0, 1, 3, 7, 15, 25, 35]
    assert reader.said() == ["notice-away"]


def test_stop_ends_the_pause_of_a_question_that_a_ready_server_failed(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm.patient_backend.AGAIN_S", 60.0)
    server = fleet.server("gpu-1")
    server.when("hi", refusing(502, ""))
    reader = Reader(fleet.patient("gpu-1"))
    reader.wait_for_notice("notice-away")
    reader.cancel.cancel()
    assert reader.done().finish == Finish("abort")
    assert len(server.exchanges) == 1


def test_a_proxy_that_lost_its_patience_is_not_a_server_that_is_gone(fleet: Fleet) -> None:
    first, second = fleet.server("gpu-1"), fleet.server("gpu-2")
    first.when("hi", refusing(504, "<html>Gateway Time-out</html>"))
    patient = fleet.patient("gpu-1", "gpu-2")
    Reader(patient, ask("before")).done()
    reader = Reader(patient).done()
    assert type(reader.error) is ServerProxyTimeoutError
    assert "proxy_read_timeout" in str(reader.error)
    assert [exchange.question for exchange in first.exchanges] == ["before", "hi"]
    assert second.exchanges == []
    assert patient.status().ready


def test_a_wrong_key_is_not_waited_for(fleet: Fleet) -> None:
    server = fleet.server("gpu-1", api_key="wrong")
    server.key = "right"
    reader = Reader(fleet.patient("gpu-1")).done()
    assert type(reader.error) is ServerKeyError


def test_a_server_that_comes_up_with_another_key_is_waited_for_no_more(fleet: Fleet) -> None:
    fleet.server("gpu-1").stop()
    reader = Reader(fleet.patient("gpu-1"))
    reader.wait_for_notice("notice-away")
    again = ProtocolServer()
    again.key = "another"
    again.port = fleet.servers["gpu-1"].port
    with again:
        assert type(reader.done().error) is ServerKeyError


def test_one_that_goes_away_and_comes_back_is_found_again(fleet: Fleet) -> None:
    fleet.server("gpu-1")
    patient = fleet.patient("gpu-1")
    assert Reader(patient).done().text == "Hello, world!"
    fleet.servers["gpu-1"].stop()
    reader = Reader(patient)
    reader.wait_for_notice("notice-away")
    assert not patient.status().ready
    fleet.back_again("gpu-1")
    assert reader.done().text == "Hello, world!"
    assert patient.status().ready


def test_a_server_that_dies_over_a_question_is_not_asked_it_again(fleet: Fleet) -> None:
    server = fleet.server("gpu-1")

    async def dies(exchange: Exchange) -> None:
        exchange.cut()

    server.when("hi", dies)
    reader = Reader(fleet.patient("gpu-1")).done()
    assert type(reader.error) is NoAnswerError
    assert len(server.exchanges) == 1


# Failover.


def test_where_the_first_server_is_gone_the_next_is_asked_and_said(fleet: Fleet) -> None:
    fleet.server("gpu-1").stop()
    second = fleet.server("gpu-2")
    reader = Reader(fleet.patient("gpu-1", "gpu-2")).done()
    assert reader.text == "Hello, world!"
    notice = reader.wait_for_notice("notice-next")
    assert notice.server == "gpu-2"
    assert notice.reason is not None
    assert (notice.reason.values["server"], notice.reason.values["next"]) == ("gpu-1", "gpu-2")
    assert len(second.exchanges) == 1


@pytest.mark.parametrize("how", ["cut", "502", "loading"])
def test_gone_before_the_first_text_has_many_forms(fleet: Fleet, how: str) -> None:
    async def cut(exchange: Exchange) -> None:
        await exchange.head()
        exchange.cut()

    handlers: dict[str, Handler] = {
        "cut": cut,
        "502": refusing(502, "<html>Bad Gateway</html>"),
        "loading": LOADING,
    }
    fleet.server("gpu-1").when("hi", handlers[how])
    fleet.server("gpu-2")
    reader = Reader(fleet.patient("gpu-1", "gpu-2")).done()
    assert reader.text == "Hello, world!"
    assert reader.said() == ["notice-next"]


@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_after_the_first_token_nothing_is_asked_a_second_time(fleet: Fleet, kind: str) -> None:
    async def breaks_off(exchange: Exchange) -> None:
        await exchange.head()
        field = "content" if kind == "text" else "reasoning"
        await exchange.event({"choices": [{"index": 0, "delta": {field: "half an answer"}}]})
        await asyncio.sleep(0.2)  # a reset may overtake what was sent
        exchange.cut()

    first, second = fleet.server("gpu-1"), fleet.server("gpu-2")
    first.when("hi", breaks_off)
    reader = Reader(fleet.patient("gpu-1", "gpu-2")).done()
    assert reader.text == "half an answer"
    assert type(reader.error) is ConnectionLostError
    assert (len(first.exchanges), len(second.exchanges)) == (1, 0)


def test_a_refusal_is_no_reason_to_ask_another_server(fleet: Fleet) -> None:
    first, second = fleet.server("gpu-1", api_key="wrong"), fleet.server("gpu-2")
    first.key = "right"
    reader = Reader(fleet.patient("gpu-1", "gpu-2")).done()
    assert type(reader.error) is ServerKeyError
    assert second.exchanges == []


def test_the_same_model_elsewhere_is_asked_before_another_one(fleet: Fleet) -> None:
    fleet.server("gpu-1").stop()
    other, same = fleet.server("gpu-2"), fleet.server("gpu-3")
    other.models, same.models = ["another"], ["something", "wanted"]
    for name in ("gpu-2", "gpu-3"):
        Reader(fleet.patient(name)).done()  # so that it is known what they have
    reader = Reader(fleet.patient("gpu-1", "gpu-2", "gpu-3"), ask(model="wanted")).done()
    assert reader.text == "Hello, world!"
    assert same.exchanges[-1].body["model"] == "wanted"
    last = reader.notices()[-1]
    assert last == Notice(last.reason, "gpu-3", "wanted", begins=True)
    same.stop()
    reader = Reader(fleet.patient("gpu-1", "gpu-2", "gpu-3"), ask(model="wanted")).done()
    assert other.exchanges[-1].body["model"] == "another"
    assert reader.notices()[-1].model == "another"


def test_where_all_are_gone_the_first_to_come_back_answers(fleet: Fleet) -> None:
    fleet.server("gpu-1").stop()
    fleet.server("gpu-2").stop()
    reader = Reader(fleet.patient("gpu-1", "gpu-2"))
    reader.wait_for_notice("notice-away")
    fleet.back_again("gpu-2")
    assert reader.done().text == "Hello, world!"
    assert reader.notices()[-1].server == "gpu-2"


def test_with_nothing_picked_the_first_servers_model_is_asked_of_the_next(fleet: Fleet) -> None:
    first, second = fleet.server("gpu-1"), fleet.server("gpu-2")
    first.models, second.models = ["A"], ["B", "A"]
    for name in ("gpu-1", "gpu-2"):
        Reader(fleet.patient(name)).done()  # so that it is known what they have
    first.stop()
    reader = Reader(fleet.patient("gpu-1", "gpu-2")).done()
    assert second.exchanges[-1].body["model"] == "A"
    assert (reader.notices()[-1].server, reader.notices()[-1].model) == ("gpu-2", "A")


def test_the_receipt_names_who_answered_where_its_models_were_not_known(fleet: Fleet) -> None:
    fleet.server("gpu-1", model="A").stop()
    fleet.server("gpu-2").models = ["B"]
    last = answered(fleet.patient("gpu-1", "gpu-2"), ask())
    assert last.text == "Hello, world!"
    assert (last.server, last.model) == ("gpu-2", "B")


def test_a_receipt_does_not_give_one_servers_model_to_another(fleet: Fleet) -> None:
    fleet.server("gpu-1", model="A").stop()
    fleet.server("gpu-2").stop()
    last = answered(fleet.patient("gpu-1", "gpu-2", wait_s=0), ask())
    assert type(last.error) is ServerUnreachableError
    assert (last.server, last.model) == ("gpu-2", "")


def test_where_the_first_will_not_come_another_that_may_is_waited_for(fleet: Fleet) -> None:
    fleet.server("gpu-1").stop()
    fleet.server("gpu-2").stop()
    patient = fleet.patient("gpu-1", "gpu-2")
    reader = Reader(patient)
    reader.wait_for_notice("notice-away")
    again = ProtocolServer()
    again.key = "another"
    again.port = fleet.servers["gpu-1"].port
    with again:
        assert reader.wait(lambda: reader.notices()[-1].server == "gpu-2" or bool(reader.error))
        assert type(patient.status().error) is ServerKeyError
        fleet.back_again("gpu-2")
        assert reader.done().text == "Hello, world!"
        assert again.exchanges == []


def test_a_name_that_is_unknown_does_not_end_the_waiting_for_another(fleet: Fleet) -> None:
    fleet.backends["gpu-1"] = unknown = VllmBackend("http://gpu-1.invalid/v1", server="gpu-1")
    fleet.server("gpu-2").stop()
    try:
        reader = Reader(fleet.patient("gpu-1", "gpu-2"))
        assert reader.wait_for_notice("notice-away").server == "gpu-2"
        fleet.back_again("gpu-2")
        assert reader.done().text == "Hello, world!"
    finally:
        unknown.close()


def test_failover_to_a_smaller_window_leaves_the_oldest_questions_out(fleet: Fleet) -> None:
    async def only_short(exchange: Exchange) -> None:
        tokens = 100 * len(exchange.body["messages"])
        if tokens <= 300:
            await saying(["short ", "now"])(exchange)
            return
        message = (
            "This model's maximum context length is 400 tokens. However, you requested "
            f"{tokens + 50} tokens ({tokens} in the messages, 50 in the completion)."
        )
        await refusing(400, {"error": {"message": message}})(exchange)

    first, second = fleet.server("gpu-1"), fleet.server("gpu-2")
    listed = [{"id": "A", "max_model_len": 100_000}]
    first.models_handler = refusing(200, {"data": listed})
    first.when("now?", saying(["all ", "of it"]))
    second.when("now?", only_short)
    turns = [
        message
        for number in range(4)
        for message in (Message("user", f"{number}?"), Message("assistant", "x" * 400))
    ]
    request = GenerationRequest((*turns, Message("user", "now?")))
    patient = fleet.patient("gpu-1", "gpu-2")
    before = answered(patient, request)
    assert (before.text, before.left_out) == ("all of it", 0)
    first.stop()
    after = answered(patient, request)
    assert (after.text, after.server) == ("short now", "gpu-2")
    assert after.left_out == 3
    assert [len(exchange.body["messages"]) for exchange in second.exchanges] == [9, 3]


def test_servers_that_die_and_are_away_are_each_asked_once(fleet: Fleet) -> None:
    async def dies(exchange: Exchange) -> None:
        exchange.cut()

    first = fleet.server("gpu-1")
    first.when("deadly", dies)
    fleet.server("gpu-2").stop()
    patient = fleet.patient("gpu-1", "gpu-2")
    Reader(patient).done()  # so that the first is known to be ready, as it is again at once
    reader = Reader(patient, ask("deadly")).done()
    assert type(reader.error) is NoAnswerError
    assert [exchange.question for exchange in first.exchanges] == ["hi", "deadly"]


def test_stop_reaches_the_server_that_took_over(fleet: Fleet) -> None:
    async def mute(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.hold()

    fleet.server("gpu-1").stop()
    second = fleet.server("gpu-2")
    second.when("hi", mute)
    reader = Reader(fleet.patient("gpu-1", "gpu-2"))
    exchange = second.exchange()
    reader.cancel.cancel()
    assert reader.done().finish == Finish("abort")
    assert exchange.gone.wait(2)


def test_an_abandoned_answer_frees_the_server(fleet: Fleet) -> None:
    server = fleet.server("gpu-1")
    server.when("hi", saying(["x"] * 9999, gap_s=0.01))
    stream = fleet.patient("gpu-1").stream(ask(), CancelToken())
    while not isinstance(next(stream), Delta):
        pass
    stream.close()
    assert server.exchange().gone.wait(2)


# Slow is not stuck.


def test_once_the_speed_is_known_the_page_is_told_how_long_reading_takes(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm.patient_backend.WORTH_SAYING_S", 0.2)
    server = fleet.server("gpu-1")

    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(0.4)
        await saying(["read"])(exchange)

    server.when("long", slow)
    long = ask("long " * 400)
    patient = fleet.patient("gpu-1")
    assert Reader(patient, long).done().said() == []
    assert Reader(patient, ask("short")).done().said() == []
    expected_s = fleet.backends["gpu-1"].expect_prefill_s(ask("long " * 800))
    assert expected_s is not None
    assert 0.8 <= expected_s < 8
    assert Reader(patient, long).done().said() == ["notice-reading"]
