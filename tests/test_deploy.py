"""What deploy/ says is what it does: the compose file by Docker Compose's own word, the proxy's
configuration by nginx itself, in front of a small server that notes what reaches it.

The same configuration in front of the app, in a browser: tests/browser/test_behind_nginx.py.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from sqlalchemy.engine import make_url

from llm.settings import Settings
from llm.settings_files import PREFIX
from tests.deploy_tools import (
    DEPLOY,
    ROOT,
    Proxy,
    compose_command,
    free_port,
    render,
    trusting,
    write_certificate,
)

HEAVY = ("torch", "transformers", "accelerate", "bitsandbytes", "tokenizers", "gguf")
WAIT_S = 20


def compose(*options: str, variables: dict[str, str] | None = None) -> dict[str, Any]:
    """The compose file as Docker Compose understands it, all profiles on."""
    command = [*compose_command(), "--file", str(DEPLOY / "compose.yaml"), "--profile", "*"]
    command += [*options, "config", "--format", "json", "--no-path-resolution"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(variables or {})},
    )
    assert done.returncode == 0, done.stderr
    # A variable without value or default would be said there.
    assert done.stderr == ""
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def test_app_proxy_and_vllm_start_by_themselves_and_come_back(services: dict[str, Any]) -> None:
    assert set(services) == {"proxy", "app", "app-2", "vllm", "postgres", "redis"}
    started = {name for name, service in services.items() if not service.get("profiles")}
    assert started == {"proxy", "app", "vllm", "postgres"}
    for name, service in services.items():
        assert service["restart"] == "unless-stopped", name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service.get("privileged"), name


def test_only_the_proxy_can_be_reached_and_only_from_this_machine(services: dict[str, Any]) -> None:
    ports = {name: service.get("ports", []) for name, service in services.items()}
    assert [name for name, published in ports.items() if published] == ["proxy"]
    assert [(port["host_ip"], port["target"]) for port in ports["proxy"]] == [("127.0.0.1", 8080)]
    assert compose()["networks"]["back"]["internal"] is True
    assert "front" not in services["vllm"]["networks"]
    assert "front" not in services["redis"]["networks"]
    assert set(services["postgres"]["networks"]) == {"back"}
    assert "back" not in services["proxy"]["networks"]


def test_the_app_and_the_proxy_can_write_nothing_but_what_they_must(
    services: dict[str, Any],
) -> None:
    for name in ("proxy", "app", "app-2", "postgres", "redis"):
        assert services[name]["read_only"] is True, name
        assert services[name]["cap_drop"] == ["ALL"], name
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER 10001:10001$", dockerfile, re.M)
    assert services["app"]["environment"] == services["app-2"]["environment"]


def test_every_setting_that_it_names_is_one(services: dict[str, Any]) -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    named = set(re.findall(r"\bSTEADY_CHAT_[A-Z_]+", dockerfile))
    named |= {name for name in services["app"]["environment"] if name.startswith(PREFIX)}
    named |= set(re.findall(r"STEADY_CHAT_[A-Z_]+", (DEPLOY / "start-app.sh").read_text("utf-8")))
    assert len(named) > 4
    assert named <= {f"{PREFIX}{name}".upper() for name in Settings.model_fields}


def test_the_app_asks_the_vllm_beside_it_for_no_more_than_that_takes(
    services: dict[str, Any],
) -> None:
    app = services["app"]["environment"]
    assert "--port=8000" in services["vllm"]["command"]
    assert app["STEADY_CHAT_VLLM_BASE_URL"] == "http://vllm:8000/v1"
    assert set(services["app"]["networks"]) & set(services["vllm"]["networks"]) == {"back"}
    assert f"--max-num-seqs={app['STEADY_CHAT_VLLM_SLOTS']}" in services["vllm"]["command"]


def test_as_many_gpus_are_reserved_as_the_model_is_split_over() -> None:
    vllm = compose(variables={"GPUS": "8"})["services"]["vllm"]
    (device,) = vllm["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["count"], device["capabilities"]) == ("nvidia", 8, ["gpu"])
    assert "--tensor-parallel-size=8" in vllm["command"]


def test_the_example_has_every_variable_with_its_default() -> None:
    asked = dict(re.findall(r"\$\{([A-Z_]+):-([^}]*)\}", (DEPLOY / "compose.yaml").read_text()))
    lines = (DEPLOY / ".env.example").read_text(encoding="utf-8").splitlines()
    assert dict(line.split("=", 1) for line in lines if line and line[0] != "#") == asked
    assert compose("--env-file", str(DEPLOY / ".env.example")) == compose()


def test_no_secret_is_in_the_file_or_gets_into_the_image(services: dict[str, Any]) -> None:
    for name in ("vllm_api_key", "postgres_password"):
        assert compose()["secrets"][name]["file"] == f"secrets/{name}"
    for service in services.values():
        told = service.get("environment", {})
        assert not [k for k in told if re.search("API_KEY|PASSWORD", k) and "FILE" not in k]
    for name in (
        "deploy/.env",
        "deploy/secrets/vllm_api_key",
        "deploy/app.env",
        "deploy/tls/a",
        ".streamlit/secrets.toml",
    ):
        ignored = subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT, check=False)
        assert ignored.returncode == 0, name
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and line[0] != "#"]
    assert rules[0] == "*", "what isn't named stays out"
    kept = [line[1:] for line in rules if line.startswith("!")]
    copied = re.findall(
        r"^COPY (?:--chmod=\d+ )?(?!--from)(\S+)", (DEPLOY / "Dockerfile").read_text("utf-8"), re.M
    )
    assert sorted(
        path.replace(".streamlit", ".streamlit/config.toml") for path in copied
    ) == sorted(kept)
    for path in kept:
        assert (ROOT / path).exists(), path


def test_the_key_reaches_the_app_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n", encoding="utf-8")
    fake = tmp_path / "streamlit"
    fake.write_text('#!/bin/sh\necho "$STEADY_CHAT_VLLM_API_KEY|$VLLM_API_KEY_FILE|$*"\n')
    fake.chmod(0o755)
    done = subprocess.run(
        [DEPLOY / "start-app.sh", "--server.port=1"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "VLLM_API_KEY_FILE": str(tmp_path / "key")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "s3cret||run streamlit_app.py --server.port=1\n"


def test_the_password_reaches_the_app_from_its_file(
    services: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("p@ss:/%word\n", encoding="utf-8")
    fake = tmp_path / "streamlit"
    fake.write_text('#!/bin/sh\necho "$PGPASSWORD|$POSTGRES_PASSWORD_FILE"\n')
    fake.chmod(0o755)
    done = subprocess.run(
        [DEPLOY / "start-app.sh"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "POSTGRES_PASSWORD_FILE": f"{tmp_path}/password"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "p@ss:/%word|\n"
    app, postgres = services["app"], services["postgres"]["environment"]
    url = make_url(app["environment"]["STEADY_CHAT_DATABASE_URL"])
    assert (url.host, url.username, url.database, url.password) == (
        "postgres",
        postgres["POSTGRES_USER"],
        postgres["POSTGRES_DB"],
        None,
    )
    assert {each["source"] for each in app["secrets"]} == {"vllm_api_key", "postgres_password"}
    assert app["environment"]["POSTGRES_PASSWORD_FILE"] == postgres["POSTGRES_PASSWORD_FILE"]


def test_the_key_reaches_vllm_and_is_no_part_of_its_command(
    services: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "vllm_api_key").write_text("s3cret\n", encoding="utf-8")
    fake = tmp_path / "vllm"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$VLLM_API_KEY" "$@"\n')
    fake.chmod(0o755)
    vllm = services["vllm"]
    # The file escapes each dollar sign for Docker Compose, and so does `config`.
    command = [part.replace("$$", "$") for part in (*vllm["entrypoint"], *vllm["command"])]
    command = [part.replace("/run/secrets", str(tmp_path)) for part in command]
    done = subprocess.run(
        command,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["s3cret", "serve", *vllm["command"]]


def test_the_app_starts_and_draws_without_what_the_image_leaves_out() -> None:
    left_out = re.search(r"grep -vE '\^\((.*?)\)=='", (DEPLOY / "Dockerfile").read_text("utf-8"))
    assert left_out
    assert tuple(left_out[1].split("|")) == HEAVY
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text("utf-8"), re.M)
    assert set(HEAVY) <= set(pinned)
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({HEAVY!r}))\n"
        "import streamlit_app\n"
        "from streamlit.testing.v1 import AppTest\n"
        "page = AppTest.from_file('streamlit_app.py', default_timeout=60).run()\n"
        "assert not page.exception, page.exception\n"
        "page.chat_input[0].set_value('anybody?').run()\n"
        "assert not page.exception, page.exception\n"
        "print([error.value for error in page.error])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={
            **os.environ,
            "STEADY_CHAT_BACKENDS": "vllm",
            "STEADY_CHAT_VLLM_BASE_URL": "http://127.0.0.1:9/v1",
            "STEADY_CHAT_SERVER_WAIT_S": "0",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "http://127.0.0.1:9/v1" in done.stdout


class Upstream:
    """A small server in the app's place that notes what reaches it.

    Attributes:
        requests: path and headers of each request.
        go_on: `/stream` sends its second half when this is set.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.go_on = threading.Event()
        noting = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                noting.requests.append((self.path, dict(self.headers)))
                if self.path == "/stream":
                    self.stream()
                    return
                kind = "text/javascript" if self.path.startswith("/static/") else "text/html"
                self.reply(kind, b"x" * 5000)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def reply(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def stream(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"1")
                self.wfile.flush()
                # Without that word there is no second half.
                if noting.go_on.wait(WAIT_S):
                    self.wfile.write(b"2")
                self.close_connection = True

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def upstreams() -> Iterator[list[Upstream]]:
    made = [Upstream(), Upstream()]
    yield made
    for upstream in made:
        upstream.close()


StartProxy = Callable[..., Proxy]


@pytest.fixture
def start_proxy(upstreams: list[Upstream], tmp_path: Path) -> Iterator[StartProxy]:
    """A function that starts nginx in front of the upstreams; arguments as for `render`."""
    running: list[Proxy] = []

    def start(**given: Any) -> Proxy:
        port = free_port()
        servers = " ".join(f"server 127.0.0.1:{upstream.port};" for upstream in upstreams)
        text = render(f"127.0.0.1:{port}", servers, **given)
        proxy = Proxy(tmp_path, text, f"http://127.0.0.1:{port}")
        assert proxy.check() == ""
        proxy.start()
        running.append(proxy)
        return proxy

    yield start
    for proxy in running:
        proxy.stop()


def get(proxy: Proxy, path: str, **headers: str) -> HTTPResponse:
    request = urllib.request.Request(
        proxy.address + path,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
    reply: HTTPResponse = urllib.request.urlopen(request, timeout=WAIT_S)
    return reply


def test_what_streams_over_http_arrives_as_it_is_sent(
    start_proxy: StartProxy, upstreams: list[Upstream]
) -> None:
    reply = get(start_proxy(), "/stream", Accept_Encoding="gzip")
    # The rest is sent only when this has arrived.
    assert reply.read(1) == b"1"
    for upstream in upstreams:
        upstream.go_on.set()
    assert reply.read() == b"2"


def test_a_visitor_gets_one_number_and_stays_with_one_process(
    start_proxy: StartProxy, upstreams: list[Upstream]
) -> None:
    proxy = start_proxy()
    seen = set()
    for _ in range(12):
        for upstream in upstreams:
            upstream.requests.clear()
        first = get(proxy, "/")
        cookie = first.headers["Set-Cookie"]
        assert re.fullmatch(
            r"steady_visitor=[0-9a-f]{32}; Path=/; Max-Age=\d+; HttpOnly; SameSite=Lax", cookie
        )
        for path in ("/", "/static/a.js", "/steady/paint", "/_stcore/stream"):
            later = get(proxy, path, Cookie=cookie.partition(";")[0])
            assert later.headers["Set-Cookie"] is None
        counts = [len(upstream.requests) for upstream in upstreams]
        assert sorted(counts) == [0, 5], "the first request too"
        seen.add(counts.index(5))
    assert seen == {0, 1}, "visitors are spread over the processes"


def test_a_made_up_number_is_replaced(start_proxy: StartProxy) -> None:
    reply = get(start_proxy(), "/", Cookie="steady_visitor=me; Path=/")
    assert "steady_visitor=" in reply.headers["Set-Cookie"]


def test_when_one_process_is_gone_its_visitors_are_let_in_by_another(
    start_proxy: StartProxy, upstreams: list[Upstream]
) -> None:
    proxy = start_proxy()
    upstreams[0].close()
    for _ in range(8):
        assert get(proxy, "/").status == 200


def test_the_app_hears_which_address_was_asked_for_and_by_whom(
    start_proxy: StartProxy, upstreams: list[Upstream]
) -> None:
    proxy = start_proxy()
    get(proxy, "/", Host="chat.example.com:8443", X_Forwarded_For="6.6.6.6", Connection="close")
    ((_, headers),) = [*upstreams[0].requests, *upstreams[1].requests]
    assert headers["Host"] == "chat.example.com:8443"
    assert headers["X-Forwarded-For"] == "127.0.0.1"
    assert headers["X-Forwarded-Proto"] == "http"
    assert headers["X-Forwarded-Host"] == "chat.example.com:8443"
    assert "Upgrade" not in headers


def test_a_web_socket_is_asked_for_as_one(
    start_proxy: StartProxy, upstreams: list[Upstream]
) -> None:
    get(start_proxy(), "/_stcore/stream", Upgrade="websocket", Connection="Upgrade")
    ((_, headers),) = [*upstreams[0].requests, *upstreams[1].requests]
    assert (headers["Upgrade"], headers["Connection"]) == ("websocket", "upgrade")


def test_files_are_compressed_and_nothing_else(start_proxy: StartProxy) -> None:
    proxy = start_proxy()
    script = get(proxy, "/static/js/index.js", Accept_Encoding="gzip")
    assert script.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(script.read()) == b"x" * 5000
    assert get(proxy, "/", Accept_Encoding="gzip").headers["Content-Encoding"] is None


def test_the_page_is_protected_and_figures_are_nobodys_business(
    start_proxy: StartProxy, upstreams: list[Upstream]
) -> None:
    proxy = start_proxy()
    headers = get(proxy, "/").headers
    assert headers["Content-Security-Policy"] == "frame-ancestors 'self'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Server"] == "nginx"
    for path in ("/_stcore/metrics", "/metrics", "//metrics", "/%6detrics", "/metrics?a=b"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(proxy, path, Authorization="Bearer token")
    assert [path for upstream in upstreams for path, _ in upstream.requests] == ["/"]


def test_a_body_larger_than_any_request_needs_is_refused(start_proxy: StartProxy) -> None:
    proxy = start_proxy()
    connection = HTTPConnection(proxy.address.removeprefix("http://"), timeout=WAIT_S)
    connection.request("POST", "/steady/paint", headers={"Content-Length": str(2**21)})
    assert connection.getresponse().status == 413
    connection.close()


def test_what_is_too_large_for_the_api_is_refused_by_the_app(start_proxy: StartProxy) -> None:
    connection = HTTPConnection(start_proxy().address.removeprefix("http://"), timeout=WAIT_S)
    connection.request("POST", "/v1/chat/completions", bytes(2**21))
    assert connection.getresponse().status == 200, "nginx has no objection"
    connection.close()


def test_a_file_of_conversations_may_be_as_large_as_the_app_takes(start_proxy: StartProxy) -> None:
    template = (DEPLOY / "nginx.conf.template").read_text(encoding="utf-8")
    (allowed,) = re.findall(r"upload_file \{\s+client_max_body_size (\d+)m;", template)
    config = (ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    (taken,) = re.findall(r"^maxUploadSize = (\d+)$", config, re.M)
    assert int(allowed) == int(taken) + 1, "the file, and the little around it"
    proxy = start_proxy()
    for size, refused in ((2**21, False), (int(allowed) * 2**20 + 1, True)):
        connection = HTTPConnection(proxy.address.removeprefix("http://"), timeout=WAIT_S)
        headers = {"Content-Length": str(size)}
        connection.request(
            "PUT", "/_stcore/upload_file/a/b", bytes(0 if refused else size), headers
        )
        assert (connection.getresponse().status == 413) is refused
        connection.close()


def test_the_log_doesnt_know_the_conversation(
    start_proxy: StartProxy, upstreams: list[Upstream]
) -> None:
    proxy = start_proxy()
    get(proxy, "/?c=theconversation", Referer=f"{proxy.address}/?c=theconversation")
    for upstream in upstreams:
        upstream.close()
    with pytest.raises(urllib.error.HTTPError, match="502"):
        get(proxy, "/?c=theconversation")
    proxy.stop()
    log = proxy.log.read_text(encoding="utf-8")
    assert re.search(r'"GET /" 200 \d+ [\d.]+ upstream=127.0.0.1:\d+:200', log)
    assert '"GET /" 502' in log
    assert "theconversation" not in log


def test_the_log_doesnt_know_the_id_by_which_an_answer_is_followed(
    start_proxy: StartProxy,
) -> None:
    proxy = start_proxy()
    get(proxy, "/stream/theanswer?last_event_id=0-0-0")
    proxy.stop()
    log = proxy.log.read_text(encoding="utf-8")
    assert '"GET /stream/-" 200' in log
    assert "theanswer" not in log


def test_with_the_tls_lines_it_speaks_https_and_sends_others_there(
    start_proxy: StartProxy, upstreams: list[Upstream], tmp_path: Path
) -> None:
    authority, port = trustme.CA(), free_port()
    write_certificate(authority, tmp_path)
    proxy = start_proxy(marks=("tls",), listen_tls=f"127.0.0.1:{port}", tls_folder=tmp_path)
    context = trusting(authority)
    with urllib.request.urlopen(f"https://localhost:{port}/", context=context) as reply:
        assert reply.headers["Strict-Transport-Security"] == "max-age=31536000"
        assert reply.headers["Set-Cookie"].endswith("; Secure")
    assert upstreams[0].requests + upstreams[1].requests
    assert (upstreams[0].requests + upstreams[1].requests)[0][1]["X-Forwarded-Proto"] == "https"
    connection = HTTPConnection(proxy.address.removeprefix("http://"), timeout=WAIT_S)
    connection.request("GET", "/?c=x", headers={"Host": "chat.example.com"})
    moved = connection.getresponse()
    assert (moved.status, moved.headers["Location"]) == (301, "https://chat.example.com/?c=x")
    connection.close()


def test_with_the_login_lines_nobody_gets_in_without_a_password(
    start_proxy: StartProxy, upstreams: list[Upstream], tmp_path: Path
) -> None:
    (tmp_path / "login").write_text("ann:{PLAIN}secret\n", encoding="utf-8")
    proxy = start_proxy(marks=("login",), login_file=tmp_path / "login")
    for path in ("/", "/_stcore/stream", "/steady/paint", "/static/a.js"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(proxy, path)
    assert upstreams[0].requests + upstreams[1].requests == []
    assert get(proxy, "/", Authorization="Basic YW5uOnNlY3JldA==").status == 200
    # The API asks for its own key, in the same header.
    for path in ("/v1/models", "/stream/abc"):
        assert get(proxy, path, Authorization="Bearer key").status == 200
        seen = [
            headers for upstream in upstreams for at, headers in upstream.requests if at == path
        ]
        assert seen[-1]["Authorization"] == "Bearer key"
    for path in ("/v1x", "/streams", "/x/v1/models"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(proxy, path)


def test_the_marked_lines_of_the_compose_file_belong_there(tmp_path: Path) -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    (tmp_path / "compose.yaml").write_text(re.sub("#(tls|login|sign-in) ", "", text))
    command = [*compose_command(), "--profile", "*", "--file", str(tmp_path / "compose.yaml")]
    done = subprocess.run(
        [*command, "config", "--format", "json", "--no-path-resolution"],
        capture_output=True,
        text=True,
        check=True,
    )
    services = json.loads(done.stdout)["services"]
    for name in ("app", "app-2"):
        mounted = {volume["target"]: volume for volume in services[name]["volumes"]}
        assert mounted["/app/.streamlit/secrets.toml"]["read_only"], "where Streamlit looks for it"
    proxy = services["proxy"]
    assert [port["target"] for port in proxy["ports"]] == [8080, 8443]
    told = proxy["environment"]
    mounted = {volume["target"] for volume in proxy["volumes"]}
    assert {told["PROXY_TLS_FOLDER"], told["PROXY_LOGIN_FILE"]} <= mounted


def test_every_value_of_the_template_is_given_by_the_compose_file(services: dict[str, Any]) -> None:
    template = (DEPLOY / "nginx.conf.template").read_text(encoding="utf-8")
    asked = set(re.findall(r"\$\{(PROXY_\w+)\}", template))
    environment = services["proxy"]["environment"]
    assert {name for name in environment if name.startswith("PROXY_")} == asked
    assert len(re.findall(r"PROXY_\w+", template)) == len(re.findall(r"\$\{PROXY_\w+\}", template))
    folder = environment["NGINX_ENVSUBST_OUTPUT_DIR"]
    assert f"{folder}/nginx.conf" in services["proxy"]["command"]
    assert services["proxy"]["volumes"][0]["target"] == "/etc/nginx/templates/nginx.conf.template"


def test_both_languages_of_the_explanation_have_the_same_commands() -> None:
    for name in ("deploy/README", "docs/scaling"):
        english, chinese = ((ROOT / f"{name}{end}").read_text("utf-8") for end in (".md", ".zh.md"))
        blocks = [
            re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S) for text in (english, chinese)
        ]
        assert blocks[0], name
        bare = [[re.sub(r"\s*#.*", "", block) for block in some] for some in blocks]
        assert bare[0] == bare[1], name
        assert english.count("\n## ") == chinese.count("\n## "), name
        assert "@@" not in english + chinese, "a figure was to be filled in"
        for target in re.findall(r"\]\(((?!http)[^)#]+)\)", english + chinese):
            assert (ROOT / name).parent.joinpath(target).exists(), (name, target)
