"""The doctor's look at a server: key, model, clock, and whether a proxy holds its stream back."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Literal

import pytest
from pydantic import SecretStr

from llm.doctor import AT_ONCE, Check, Doctor, Finding
from llm.doctor_access import LineCheck
from llm.doctor_server import (
    CLOCK_S,
    ClockCheck,
    ModelCheck,
    ReachCheck,
    ServerLook,
    clock_difference_s,
)
from llm.doctor_stores import DiskCheck, FolderCheck
from llm.doctor_stream import HELD_S, PieceTimes, StreamCheck, flow_of
from llm.errors import Reason
from llm.registry import JobRegistry
from llm.settings import Server
from llm.types import CancelToken
from llm.vllm_backend import VllmBackend
from tests.deploy_tools import free_port
from tests.packing_proxy import packing_proxy
from tests.protocol_server import MODEL, Exchange, ProtocolServer, refusing, saying
from tests.stalling_proxy import StallingProxy

GROUP = Reason("doctor-group-server", {"name": "gpu"})
GAP_S = 0.06
LONG_S = 30.0


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        yield running


def look_at(url: str, key: str = "", model: str = "") -> ServerLook:
    return ServerLook(
        Server(name="gpu", base_url=url, api_key=SecretStr(key), model=model), connect_timeout_s=5
    )


def found_by(check: Check) -> Finding:
    return check.run(CancelToken())


def told(finding: Finding) -> tuple[str, str]:
    return finding.level, finding.reason.message_id


def test_a_server_that_answers_and_its_key(server: ProtocolServer) -> None:
    assert told(found_by(ReachCheck(GROUP, look_at(server.url)))) == ("ok", "doctor-reach-open")
    server.key = "right"
    for key, expected in {
        "right": ("ok", "doctor-reach-key"),
        "wrong": ("bad", "doctor-reach-wrong-key"),
        "": ("bad", "doctor-reach-no-key"),
    }.items():
        assert told(found_by(ReachCheck(GROUP, look_at(server.url, key)))) == expected


def test_forbidden_is_not_unauthorized(server: ProtocolServer) -> None:
    server.models_handler = refusing(403, {"error": {"message": "not from here"}})
    look = look_at(server.url, "k")
    assert told(found_by(ReachCheck(GROUP, look))) == ("bad", "doctor-reach-forbidden")
    assert told(found_by(ModelCheck(GROUP, look, 512))) == ("skipped", "doctor-server-unasked")


def test_what_is_no_such_server_is_told_in_its_own_words(server: ProtocolServer) -> None:
    server.models_handler = refusing(200, "<html>a page</html>")
    finding = found_by(ReachCheck(GROUP, look_at(server.url)))
    assert told(finding) == ("bad", "error-server-garbage")


def test_one_that_is_gone_is_asked_once_for_all_checks(server: ProtocolServer) -> None:
    look = look_at(f"http://127.0.0.1:{free_port()}/v1")
    backend = VllmBackend(look.server.base_url)
    checks: list[Check] = [
        ReachCheck(GROUP, look),
        ModelCheck(GROUP, look, 512),
        ClockCheck(GROUP, look),
        LineCheck(GROUP, JobRegistry(), backend, look.why_not),
        StreamCheck(GROUP, look, backend),
    ]
    run = Doctor().run(lambda: checks)
    assert run.wait(1, 60)
    backend.close()
    reach, *others = [each for each in run.findings if each is not None]
    assert told(reach) == ("bad", "error-server-unreachable")
    assert {told(each) for each in others} == {("skipped", "doctor-server-unasked")}


def test_a_server_that_nobody_has_set_up_is_no_fault(server: ProtocolServer) -> None:
    gone = look_at(f"http://127.0.0.1:{free_port()}/v1")
    assert told(found_by(ReachCheck(GROUP, gone, unset=True))) == ("skipped", "doctor-server-unset")
    there = look_at(server.url)
    assert told(found_by(ReachCheck(GROUP, there, unset=True))) == ("ok", "doctor-reach-open")


def test_several_checks_are_one_question(server: ProtocolServer) -> None:
    look = look_at(server.url)
    for check in (ReachCheck(GROUP, look), ModelCheck(GROUP, look, 5), ClockCheck(GROUP, look)):
        found_by(check)
    assert len(server.lookups) == 1


def test_a_server_that_stands_still_is_given_up(
    server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm.doctor_server.LOOK_S", 0.3)
    proxy = StallingProxy(server.port)
    proxy.stall()
    look = look_at(f"http://127.0.0.1:{proxy.port}/v1")
    run = Doctor().run(lambda: [ReachCheck(GROUP, look)])
    assert run.wait(1, 60)
    proxy.close()
    (finding,) = run.findings
    assert finding is not None
    assert told(finding) == ("bad", "error-server-timeout")


@pytest.fixture
def dead() -> Iterator[str]:
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def checks_of(name: str, look: ServerLook) -> list[Check]:
    group = Reason("doctor-group-server", {"name": name})
    return [ReachCheck(group, look), ModelCheck(group, look, 512), ClockCheck(group, look)]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at a server takes longer than any test waits."""
    monkeypatch.setattr("llm.doctor_server.LOOK_S", 2 * LONG_S)
    for check in (ReachCheck, ModelCheck, ClockCheck):
        monkeypatch.setattr(check, "limit_s", 2 * LONG_S)


@pytest.mark.usefixtures("patient")
def test_a_server_that_never_answers_keeps_none_that_does_waiting(
    server: ProtocolServer, dead: str
) -> None:
    # More than there are places.
    silent = [*checks_of("dead", look_at(dead)), *checks_of("dead", look_at(dead))]
    checks = [*silent, *checks_of("well", look_at(server.url))]
    run = Doctor().run(lambda: checks)
    assert run.wait(len(silent) + 1, LONG_S), "the other server is waited for"
    findings = run.findings
    assert findings[: len(silent)] == (None,) * len(silent)
    assert [each and told(each) for each in findings[len(silent) :]] == [
        ("ok", "doctor-reach-open"),
        ("ok", "doctor-model-there"),
        ("skipped", "doctor-clock-untold"),
    ]


@pytest.mark.usefixtures("patient")
def test_however_many_servers_never_answer_one_that_does_is_told_of_at_once(
    server: ProtocolServer, dead: str
) -> None:
    silent = [each for n in range(3 * AT_ONCE) for each in checks_of(f"dead-{n}", look_at(dead))]
    run = Doctor().run(lambda: [*silent, *checks_of("well", look_at(server.url))])
    assert run.wait(len(silent) + 1, LONG_S), "the server that answers is waited for"
    assert run.findings[: len(silent)] == (None,) * len(silent)
    reach, model, _ = run.findings[len(silent) :]
    assert reach is not None
    assert model is not None
    assert (told(reach)[0], told(model)[0]) == ("ok", "ok")


@pytest.mark.usefixtures("patient")
def test_many_servers_that_never_answer_keep_no_store_waiting(dead: str, tmp_path: Path) -> None:
    silent = [each for n in range(AT_ONCE) for each in checks_of(f"dead-{n}", look_at(dead))]
    stores = [FolderCheck(tmp_path), DiskCheck((tmp_path,), lambda path: (100, 0, 100))]
    run = Doctor().run(lambda: [*silent, *stores])
    assert run.wait(len(silent) + 1, LONG_S), "the stores are waited for"
    folder, disk = run.findings[-2:]
    assert folder is not None
    assert disk is not None
    assert told(folder) == ("ok", "doctor-folder-ok")


def test_the_model_that_is_asked(server: ProtocolServer) -> None:
    def at(model: str, limit: int = 512) -> Finding:
        return found_by(ModelCheck(GROUP, look_at(server.url, model=model), limit))

    assert told(at("")) == ("ok", "doctor-model-there")
    assert told(at(MODEL)) == ("ok", "doctor-model-there")
    missing = at("/models/another")
    assert told(missing) == ("bad", "doctor-model-missing")
    assert missing.reason.values == {"model": "another", "count": 1}
    server.models_handler = refusing(200, {"data": [{"id": MODEL, "max_model_len": 2048}]})
    assert at("").reason.values["window"] == 2048
    assert told(at("", 512)) == ("ok", "doctor-model-window")
    assert told(at("", 2000)) == ("warn", "doctor-model-narrow")
    server.models_handler = refusing(200, {"data": []})
    assert told(at("")) == ("bad", "doctor-model-none")


@pytest.mark.parametrize(
    ("apart_s", "expected"),
    [
        (0, ("ok", "doctor-clock-same")),
        (600, ("warn", "doctor-clock-ahead")),
        (-600, ("warn", "doctor-clock-behind")),
    ],
)
def test_the_servers_clock(
    server: ProtocolServer, apart_s: float, expected: tuple[str, str]
) -> None:
    async def models(exchange: Exchange) -> None:
        date = formatdate(time.time() + apart_s, usegmt=True)
        await exchange.answer(200, {"data": [{"id": MODEL}]}, date=date)

    server.models_handler = models
    assert told(found_by(ClockCheck(GROUP, look_at(server.url)))) == expected


def test_a_refusal_tells_the_time_as_well_and_silence_is_none(server: ProtocolServer) -> None:
    assert told(found_by(ClockCheck(GROUP, look_at(server.url)))) == (
        "skipped",
        "doctor-clock-untold",
    )
    date = formatdate(time.time() + 900, usegmt=True)
    server.models_handler = refusing(401, {}, date=date)
    assert told(found_by(ClockCheck(GROUP, look_at(server.url)))) == ("warn", "doctor-clock-ahead")


def test_the_way_and_the_whole_second_are_no_difference() -> None:
    sent_s, came_s = 1_000_000.9, 1_000_009.2
    for second in (1_000_000, 1_000_005, 1_000_009):
        assert clock_difference_s(formatdate(second, usegmt=True), sent_s, came_s) == 0
    ahead = clock_difference_s(formatdate(1_000_010, usegmt=True), sent_s, came_s)
    assert ahead == pytest.approx(0.8)
    behind = clock_difference_s(formatdate(999_990, usegmt=True), sent_s, came_s)
    assert behind == pytest.approx(-9.9)
    assert clock_difference_s("yesterday", sent_s, came_s) is None
    assert CLOCK_S > 1


# -- the stream --


def evenly(pieces: int, gap_s: float, first_s: float = 0.1) -> PieceTimes:
    return PieceTimes(tuple(first_s + n * gap_s for n in range(pieces)), 5 * pieces)


def in_bursts(bursts: int, each: int, gap_s: float) -> PieceTimes:
    came = [(b + 1) * gap_s + n * 0.0005 for b in range(bursts) for n in range(each)]
    return PieceTimes(tuple(came), 5 * len(came))


@pytest.mark.parametrize(
    ("came", "verdict"),
    [
        (evenly(30, 0.05), "flows"),
        (evenly(30, 0.5), "flows"),
        (evenly(30, 0.005), "quick"),
        (evenly(10, 0.2), "flows"),  # three tokens a piece
        (in_bursts(1, 30, 2.0), "held"),
        (in_bursts(2, 15, 1.0), "held"),
        (in_bursts(10, 3, 0.3), "flows"),
        (PieceTimes((3.0,), 150), "held"),
        (PieceTimes((3.0,), 5), "short"),
        (evenly(3, 0.5), "short"),
        (evenly(3, 0.01), "short"),
    ],
)
def test_how_an_answer_came(came: PieceTimes, verdict: str) -> None:
    assert flow_of(came, 0.1).verdict == verdict


def test_what_took_long_before_its_first_token_may_come_quickly_then() -> None:
    assert flow_of(evenly(30, 0.005, first_s=8.0), 8.0).verdict == "quick"


@pytest.fixture
def slow(server: ProtocolServer) -> ProtocolServer:
    """It writes thirty words in some two seconds."""
    server.when("lighthouse", saying([f"word{n} " for n in range(30)], gap_s=GAP_S))
    return server


def stream_through(url: str) -> Finding:
    look = look_at(url)
    backend = VllmBackend(url)
    try:
        return found_by(StreamCheck(GROUP, look, backend))
    finally:
        backend.close()


@pytest.mark.parametrize(
    ("buffering", "expected"),
    [("on", ("warn", "doctor-stream-held")), ("off", ("ok", "doctor-stream-flows"))],
)
def test_a_proxy_that_holds_the_stream_back_is_told_by_real_nginx(
    slow: ProtocolServer,
    tmp_path: Path,
    buffering: Literal["on", "off"],
    expected: tuple[str, str],
) -> None:
    with packing_proxy(tmp_path, slow.port, buffering=buffering) as address:
        finding = stream_through(f"{address}/v1")
    assert told(finding) == expected, finding
    # One token, thirty, and thirty once more before anything is said against a proxy.
    asked = [exchange.body["max_tokens"] for exchange in slow.exchanges]
    assert asked == ([1, 30, 30] if buffering == "on" else [1, 30])


def test_without_a_proxy_the_stream_flows(slow: ProtocolServer) -> None:
    finding = stream_through(slow.url)
    assert told(finding) == ("ok", "doctor-stream-flows")
    assert float(str(finding.reason.values["seconds"])) >= HELD_S


def test_a_gateway_that_sends_the_whole_as_one_piece_holds_it_back(server: ProtocolServer) -> None:
    async def whole(exchange: Exchange) -> None:
        tokens = exchange.body["max_tokens"]
        await asyncio.sleep(tokens * GAP_S)
        await saying(["word " * tokens])(exchange)

    server.when("lighthouse", whole)
    assert told(stream_through(server.url)) == ("warn", "doctor-stream-held")


def test_a_wait_in_line_that_happens_once_is_not_held_against_a_proxy(
    server: ProtocolServer,
) -> None:
    asked: list[int] = []

    async def handler(exchange: Exchange) -> None:
        asked.append(exchange.body["max_tokens"])
        if len(asked) == 2:
            await asyncio.sleep(1.0)
            await saying([f"word{n} " for n in range(30)])(exchange)
        else:
            await saying([f"word{n} " for n in range(30)], gap_s=GAP_S)(exchange)

    server.when("lighthouse", handler)
    assert told(stream_through(server.url))[0] == "ok"
    assert asked == [1, 30, 30]


def test_a_stream_that_never_comes_is_given_up_and_the_server_freed(
    server: ProtocolServer,
) -> None:
    async def never(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.hold()

    server.when("lighthouse", never)
    backend, cancel = VllmBackend(server.url), CancelToken()
    check = StreamCheck(GROUP, look_at(server.url), backend)
    looking = threading.Thread(target=check.run, args=(cancel,))
    looking.start()
    asked = server.exchange(0, timeout_s=60)
    cancel.cancel()
    assert asked.gone.wait(60)
    looking.join(60)
    assert not looking.is_alive()
    assert len(server.exchanges) == 1, "it goes on asking"
    backend.close()
