"""What isn't a request that can be answered gets the documented error, and leaves no trace."""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from api.access import Access
from api.bodies import MAX_MESSAGES
from api.routes import api_routes
from llm.catalogue import FOLDER
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from tests.api_server import BEARER, KEY, PATIENCE_S, ApiServer, RawStream, chat, limits, serving
from tests.driven_backend import DrivenBackend

ROOT = Path(__file__).parents[1]
PATH = "/v1/chat/completions"
BODY_BYTES = 128 * 1024
SECRET = "zebra-under-water"
"""In every question here; it must never be in a log."""


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with serving(ScriptedBackend(Script("Yes.")), limits=limits(body_bytes=BODY_BYTES)) as server:
        yield server


@pytest.fixture(autouse=True)
def _nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    # httpx2 is the tests' client; what it notes is no affair of the server's.
    told = [record for record in caplog.records if not record.name.startswith(("http", "asyncio"))]
    assert not told


def post(server: ApiServer, body: object, path: str = PATH, **headers: str) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return server.http.post(path, content=content, headers={**BEARER, **named})


def error_of(reply: httpx2.Response) -> dict[str, Any]:
    """The error object, which is complete and quotes nothing that was asked."""
    body = reply.json()
    assert list(body) == ["error"]
    error: dict[str, Any] = body["error"]
    assert sorted(error) == ["code", "message", "param", "type"]
    assert error["message"].strip()
    assert SECRET not in reply.text
    assert KEY not in reply.text
    assert reply.headers["Cache-Control"] == "no-store"
    return error


QUESTION = [{"role": "user", "content": SECRET}]


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b"[]", "invalid_json", None),
        (b'"text"', "invalid_json", None),
        (b'{"messages": "\xff"}', "invalid_json", None),
        (b"[" * 50_000, "invalid_json", None),
        (b'{"a":' * 5_000, "invalid_json", None),
        (b'{"model": "scripted", "max_tokens": ' + b"9" * 5000 + b"}", None, None),
        ({"model": "scripted"}, "missing_parameter", "messages"),
        ({"messages": QUESTION}, "missing_parameter", "model"),
        (chat(SECRET, model="gpt-4o"), "model_not_found", "model"),
        (chat(SECRET, model=7), "invalid_value", "model"),
        (chat(SECRET, messages=[]), "invalid_value", "messages"),
        (chat(SECRET, messages="hi"), "invalid_value", "messages"),
        (chat(SECRET, messages=["hi"]), "invalid_value", "messages[0]"),
        (chat(SECRET, messages=[{"content": "a"}]), "missing_parameter", "messages[0].role"),
        (
            chat(SECRET, messages=[*QUESTION, {"role": "tool", "content": "a"}]),
            "invalid_value",
            "messages[1].role",
        ),
        (chat(SECRET, messages=[{"role": "user"}]), "invalid_value", "messages[0].content"),
        (
            chat(SECRET, messages=[{"role": "user", "content": 3}]),
            "invalid_value",
            "messages[0].content",
        ),
        (
            chat(
                SECRET,
                messages=[
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": SECRET},
                            {"type": "image_url", "image_url": {"url": "data:"}},
                        ],
                    }
                ],
            ),
            "unsupported_content",
            "messages[0].content[1]",
        ),
        (
            chat(SECRET, messages=[{"role": "user", "content": [{"type": "text"}]}]),
            "invalid_value",
            "messages[0].content[0].text",
        ),
        (
            chat(SECRET, messages=[{**QUESTION[0], "tool_calls": [{"id": "1"}]}]),
            "unsupported_parameter",
            "messages[0].tool_calls",
        ),
        (chat(SECRET, messages=[{"role": "user", "content": " "}]), "invalid_value", "messages"),
        (
            chat(SECRET, messages=[*QUESTION, {"role": "system", "content": "a"}]),
            "invalid_value",
            "messages",
        ),
        (
            chat(SECRET, messages=[{"role": "user", "content": ""}] * (MAX_MESSAGES + 1)),
            None,
            None,
        ),
        (chat(SECRET, temperature=9), "invalid_value", "temperature"),
        (chat(SECRET, temperature="hot"), "invalid_value", "temperature"),
        (chat(SECRET, temperature=True), "invalid_value", "temperature"),
        (json.dumps(chat(SECRET, temperature=float("nan"))).encode(), None, None),
        (chat(SECRET, top_p=0), "invalid_value", "top_p"),
        (chat(SECRET, max_tokens=0), "invalid_value", "max_tokens"),
        (chat(SECRET, max_tokens=-5), "invalid_value", "max_tokens"),
        (chat(SECRET, max_tokens=2.5), "invalid_value", "max_tokens"),
        (chat(SECRET, max_tokens="7"), "invalid_value", "max_tokens"),
        (chat(SECRET, max_tokens=10**30), "invalid_value", "max_tokens"),
        (chat(SECRET, max_tokens=-(10**400)), "invalid_value", "max_tokens"),
        (chat(SECRET, temperature=1e308), "invalid_value", "temperature"),
        (chat(SECRET, temperature=-1e308), "invalid_value", "temperature"),
        (chat(SECRET, seed=-1), "invalid_value", "seed"),
        (chat(SECRET, top_k=-1), "invalid_value", "top_k"),
        (chat(SECRET, presence_penalty=3), "invalid_value", "presence_penalty"),
        (chat(SECRET, stop=["a"] * 5), "invalid_value", "stop"),
        (chat(SECRET, stop=[""]), "invalid_value", "stop"),
        (chat(SECRET, stop={"a": 1}), "invalid_value", "stop"),
        (chat(SECRET, stream="yes"), "invalid_value", "stream"),
        (chat(SECRET, stream_options=3), "invalid_value", "stream_options"),
        (chat(SECRET, n=2), "unsupported_parameter", "n"),
        (chat(SECRET, tools=[{"type": "function"}]), "unsupported_parameter", "tools"),
        (chat(SECRET, logprobs=True), "unsupported_parameter", "logprobs"),
        (
            chat(SECRET, response_format={"type": "json_object"}),
            "unsupported_parameter",
            "response_format",
        ),
        (chat(SECRET, reasoning_effort="low"), "unsupported_parameter", "reasoning_effort"),
        (chat(SECRET, temprature=1), "unknown_parameter", "temprature"),
        (chat(SECRET, **{"x" * 5000: 1}), "unknown_parameter", "x" * 100),
        (chat(SECRET, **{"": 1}), "unknown_parameter", ""),
    ],
)
def test_what_cant_be_answered_is_refused_with_its_place(
    server: ApiServer, body: object, code: str | None, param: str | None
) -> None:
    reply = post(server, body)
    assert reply.status_code == (404 if code == "model_not_found" else 400)
    error = error_of(reply)
    assert error["type"] == "invalid_request_error"
    if code is not None:
        assert (error["code"], error["param"]) == (code, param)


def test_a_question_is_answered_all_the_same_afterwards(server: ApiServer) -> None:
    assert post(server, chat(SECRET)).json()["choices"][0]["message"]["content"] == "Yes."


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize("times", [2, 100])
def test_a_large_body_is_refused_and_the_client_hears_it(
    server: ApiServer, times: int, *, stated: bool
) -> None:
    size = BODY_BYTES * times

    def pieces() -> Iterator[bytes]:
        sent = 0
        while sent < size:
            yield b"x" * 4096
            sent += 4096

    content = b"x" * size if stated else pieces()
    try:
        reply = server.http.post(PATH, content=content, headers=BEARER)
    except httpx2.TransportError:
        assert times == 100, "what is hardly too large is read to its end"
        return
    assert reply.status_code == 413
    assert error_of(reply)["code"] == "body_too_large"


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        (None, "key_missing"),
        ("", "key_missing"),
        ("Bearer", "key_missing"),
        (KEY, "key_missing"),
        (f"Basic {KEY}", "key_missing"),
        (f"Bearer {KEY}x", "invalid_api_key"),
        (f"Bearer {KEY[:-1]}", "invalid_api_key"),
        (b"Bearer \xff\xfe", "invalid_api_key"),
    ],
)
@pytest.mark.parametrize("path", [PATH, "/v1/models", "/v1/embeddings", "/stream", "/v1/other"])
def test_without_the_key_nothing_is_told(
    server: ApiServer, authorization: str | bytes | None, code: str, path: str
) -> None:
    headers: dict[str, Any] = {} if authorization is None else {"Authorization": authorization}
    method = "GET" if path == "/v1/models" else "POST"
    body = json.dumps(chat(SECRET))
    reply = server.http.request(method, path, content=body, headers=headers)
    assert reply.status_code == 401
    assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert error_of(reply)["code"] == code


def test_addresses_and_methods_that_there_arent_get_errors_of_ours(server: ApiServer) -> None:
    for path in ("/v1/completions", "/v1", "/v1/", "/v1/chat/completions/x"):
        reply = post(server, chat(SECRET), path)
        if reply.status_code != 404 or "json" not in reply.headers["Content-Type"]:
            assert path == "/v1", "Streamlit's page answers there"
            continue
        assert error_of(reply)["code"] == "unknown_url"
    reply = server.http.get(PATH, headers=BEARER)
    assert (reply.status_code, reply.headers["Allow"]) == (405, "POST")
    assert error_of(reply)["code"] == "method_not_allowed"


def test_the_sentence_is_in_the_language_that_is_asked_for(server: ApiServer) -> None:
    english = error_of(post(server, chat(SECRET, n=2)))["message"]
    chinese = error_of(post(server, chat(SECRET, n=2), Accept_Language="zh-CN,en;q=0.5"))
    assert english == "“n” isn’t supported here. Leave it out."
    assert re.search("[\u4e00-\u9fff]", chinese["message"])


def test_it_is_off_unless_it_is_switched_on() -> None:
    assert not Access().on
    with TestClient(Starlette(routes=api_routes(lambda: None))) as client:
        for path in ("/v1/models", "/v1/anything", "/stream/abc"):
            reply = client.get(path, headers=BEARER)
            assert (reply.status_code, reply.json()["error"]["code"]) == (404, "disabled")


@pytest.fixture(scope="module")
def keyless() -> Iterator[ApiServer]:
    access = Access(on_loopback=True, origins=("http://page.example",))
    with serving(ScriptedBackend(Script("Yes.")), access=access) as server:
        yield server


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, None),
        ({"Host": "localhost:80"}, None),
        ({"Host": "[::1]:80"}, None),
        ({"Host": "[::ffff:127.0.0.1]:80"}, None),
        ({"Host": "[::ffff:8.8.8.8]:80"}, "host_not_allowed"),
        ({"Host": "evil.example"}, "host_not_allowed"),
        ({"Host": "127.0.0.1.evil.example"}, "host_not_allowed"),
        ({"Host": "localhost@evil.example"}, "host_not_allowed"),
        ({"Host": ""}, "host_not_allowed"),
        ({"Host": "LOCALHOST:80"}, None),
        ({"Host": "[1:2]"}, "host_not_allowed"),
        ({"Host": "[::::]:80"}, "host_not_allowed"),
        ({"Host": "[127.0.0.1]"}, None),
        ({"X-Forwarded-For": "127.0.0.1"}, "loopback_only"),
        ({"X-Forwarded-For": "8.8.8.8"}, "loopback_only"),
        ({"Forwarded": "for=127.0.0.1"}, "loopback_only"),
        ({"X-Forwarded-Proto": "https"}, "loopback_only"),
        ({"CF-Connecting-IP": "8.8.8.8"}, "loopback_only"),
        ({"Via": "1.1 proxy"}, "loopback_only"),
        ({"Origin": "http://evil.example"}, "origin_not_allowed"),
        ({"Origin": "null"}, "origin_not_allowed"),
        ({"Origin": "http://localhost:9"}, "origin_not_allowed"),
        ({"Sec-Fetch-Site": "cross-site"}, "origin_not_allowed"),
        ({"Sec-Fetch-Site": "same-origin"}, None),
        ({"Host": "localhost:80", "Origin": "http://localhost:80"}, None),
        ({"Origin": "http://page.example"}, None),
    ],
)
def test_without_a_key_only_programs_of_this_machine_may(
    keyless: ApiServer, headers: dict[str, str], code: str | None
) -> None:
    reply = keyless.http.post(PATH, json=chat(SECRET), headers=headers)
    if code is None:
        assert reply.status_code == 200
        return
    assert reply.status_code == 403
    assert error_of(reply)["code"] == code
    told = keyless.http.get("/stream/unknown", headers=headers)
    assert told.status_code == 403, "nor by an id"


def test_where_there_is_a_key_this_machines_programs_need_it_too() -> None:
    access = Access(KEY, on_loopback=True)
    with serving(ScriptedBackend(Script("Yes.")), access=access) as server:
        assert server.http.get("/v1/models").status_code == 401


def test_only_named_pages_can_read_from_a_browser(keyless: ApiServer) -> None:
    asked = {"Access-Control-Request-Method": "POST"}
    for origin, allowed in (("http://page.example", True), ("http://evil.example", False)):
        headers = {"Origin": origin}
        before = keyless.http.options(PATH, headers={**headers, **asked})
        reply = keyless.http.post(PATH, json=chat(SECRET), headers=headers)
        for each in (before, reply):
            told = each.headers.get("Access-Control-Allow-Origin")
            assert told == (origin if allowed else None)
            assert each.headers["Vary"] == "Origin"


@pytest.mark.parametrize("path", [PATH, "/stream", "/v1/embeddings"])
def test_a_server_that_stops_doesnt_wait_for_who_still_sends(path: str) -> None:
    with serving(ScriptedBackend(Script("Yes."))) as server:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
            client.sendall(head.encode() + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 100"), "it is being read"
            client.sendall(b"{")
            server.server.should_exit = True
            told = b"".join(iter(lambda: client.recv(65536), b""))
        assert told.startswith(b"HTTP/1.1 503")
        assert b'"shutting_down"' in told


def test_no_trace_is_left_where_an_answer_breaks_or_a_client_goes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with DrivenBackend() as driven, serving(driven) as server:
        stream = RawStream(server, PATH, chat(SECRET, stream=True))
        taken = driven.next_stream()
        taken.say(SECRET)
        stream.read_until(SECRET.encode())
        stream.close()
        assert taken.closed.wait(PATIENCE_S)
        half = RawStream(server, PATH, None, method="POST", headers={**BEARER, "Expect": "x"})
        half.close()
    told = "".join(capfd.readouterr())
    assert SECRET not in told
    assert KEY not in told


def test_the_key_isnt_shown() -> None:
    assert KEY not in repr(Access(KEY))


def test_every_code_is_documented_and_has_its_sentence() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "api").glob("*.py"))
    sentences = set(re.findall(r"refused\(\s*\d+,\s*\"([a-z_]+)\"", sources))
    sentences |= set(re.findall(r"_unknown\(\"([a-z_]+)\"\)", sources))
    codes = sentences | set(re.findall(r"Error, \d+, \"([a-z_]+)\"", sources))
    assert len(codes) > 25
    english = (FOLDER / "en.ftl").read_text(encoding="utf-8")
    said = set(re.findall(r"^api-((?!reason-)[a-z-]+) =", english, re.M))
    assert said == {code.replace("_", "-") for code in sentences}
    for name in ("docs/api.md", "docs/api.zh.md"):
        table = re.findall(
            r"^\| \d+ \| `([a-z_]+)` \|", (ROOT / name).read_text(encoding="utf-8"), re.M
        )
        assert sorted(table) == sorted(codes), name
