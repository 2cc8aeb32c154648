"""The doctor's look at a real vLLM: by itself, with what can be set wrong, and through nginx."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest
from pydantic import SecretStr

from llm.doctor import Doctor, Finding
from llm.doctor_access import LineCheck
from llm.doctor_server import ClockCheck, ModelCheck, ReachCheck, ServerLook
from llm.doctor_stream import HELD_S, StreamCheck
from llm.errors import Reason
from llm.registry import JobRegistry
from llm.settings import Server
from llm.vllm_backend import VllmBackend
from tests.deploy_tools import free_port
from tests.packing_proxy import packing_proxy
from tests.servers.real_server import WINDOW_TOKENS, RealServer

pytest_plugins = "tests.servers.fixtures"
pytestmark = pytest.mark.vllm

GROUP = Reason("doctor-group-server", {"name": "gpu"})
LONG_S = 300.0


def looked_at(
    vllm: RealServer, *, url: str = "", key: str | None = None, model: str = ""
) -> dict[str, Finding]:
    """A whole round on that server, as the page has it made, by the checks' names."""
    key = vllm.key if key is None else key
    server = Server(
        name="gpu", base_url=url or vllm.url, api_key=SecretStr(key) if key else None, model=model
    )
    look = ServerLook(server, connect_timeout_s=5)
    backend = VllmBackend(server.base_url, server="gpu", api_key=key, model=model)
    with closing(backend), closing(JobRegistry()) as registry:
        checks = [
            ReachCheck(GROUP, look),
            ModelCheck(GROUP, look, 512),
            ClockCheck(GROUP, look),
            LineCheck(GROUP, registry, backend, look.why_not),
            StreamCheck(GROUP, look, backend),
        ]
        run = Doctor().run(lambda: checks)
        assert run.wait(1, LONG_S)
    found = zip(run.checks, run.findings, strict=True)
    return {check.name: finding for check, finding in found if finding is not None}


def told(found: dict[str, Finding]) -> dict[str, str]:
    return {
        name.removeprefix("doctor-check-"): finding.reason.message_id
        for name, finding in found.items()
    }


@pytest.fixture(autouse=True)
def nothing_is_left_running(vllm: RealServer) -> Iterator[None]:
    yield
    assert vllm.requests_held() == 0


def test_all_is_well_with_one_that_is_set_up_rightly(vllm: RealServer) -> None:
    found = looked_at(vllm, model=vllm.model)
    assert told(found) == {
        "reach": "doctor-reach-key",
        "model": "doctor-model-window",
        "clock": "doctor-clock-same",
        "line": "doctor-line-ok",
        "stream": "doctor-stream-flows",
    }
    assert {finding.level for finding in found.values()} == {"ok"}
    assert found["doctor-check-model"].reason.values["window"] == WINDOW_TOKENS
    values = found["doctor-check-stream"].reason.values
    assert float(str(values["seconds"])) >= HELD_S
    assert int(str(values["bursts"])) > 6


@pytest.mark.parametrize(
    ("key", "expected"), [("another", "doctor-reach-wrong-key"), ("", "doctor-reach-no-key")]
)
def test_a_key_that_it_refuses(vllm: RealServer, key: str, expected: str) -> None:
    found = looked_at(vllm, key=key)
    unasked = dict.fromkeys(("model", "line", "stream"), "doctor-server-unasked")
    # Its refusal tells the time, too.
    assert told(found) == {"reach": expected, "clock": "doctor-clock-same", **unasked}
    assert found["doctor-check-reach"].level == "bad"


def test_a_model_that_it_does_not_have_and_a_server_that_is_not_there(vllm: RealServer) -> None:
    missing = looked_at(vllm, model="/models/another")["doctor-check-model"]
    assert (missing.level, missing.reason) == (
        "bad",
        Reason("doctor-model-missing", {"model": "another", "count": 1}),
    )
    gone = looked_at(vllm, url=f"http://127.0.0.1:{free_port()}/v1")
    rest = dict.fromkeys(("model", "clock", "line", "stream"), "doctor-server-unasked")
    assert told(gone) == {"reach": "error-server-unreachable", **rest}


@pytest.mark.parametrize(
    ("buffering", "expected"),
    [("on", ("warn", "doctor-stream-held")), ("off", ("ok", "doctor-stream-flows"))],
)
def test_nginx_before_it_that_holds_its_stream_back(
    vllm: RealServer, tmp_path: Path, buffering: Literal["on", "off"], expected: tuple[str, str]
) -> None:
    with packing_proxy(tmp_path, vllm.port, buffering=buffering) as address:
        finding = looked_at(vllm, url=f"{address}/v1")["doctor-check-stream"]
    assert (finding.level, finding.reason.message_id) == expected, finding
