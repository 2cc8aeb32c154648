"""Signing in is either set up rightly or said to be wrong; never open by mistake."""

from __future__ import annotations

import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from llm.catalogue import catalogue
from llm.errors import NotSignedInError, SettingsError, SignInProviderError
from llm.sign_in_setup import check_provider, read_providers
from tests.deploy_tools import free_port
from ui.owner import owner_id

ROOT = Path(__file__).parents[1]
METADATA = "https://id.example.com/.well-known/openid-configuration"
WHOLE: dict[str, Any] = {
    "redirect_uri": "https://chat.example.com/oauth2callback",
    "cookie_secret": "0123456789abcdef0123456789abcdef",
    "client_id": "steady-chat",
    "client_secret": "secret",
    "server_metadata_url": METADATA,
}
SHARED = {key: WHOLE[key] for key in ("redirect_uri", "cookie_secret")}
OWN = {key: WHOLE[key] for key in ("client_id", "client_secret", "server_metadata_url")}


class Provider(NamedTuple):
    url: str
    closed: threading.Event


def test_one_provider_without_a_name() -> None:
    assert read_providers(WHOLE) == {"default": METADATA}
    assert read_providers({**WHOLE, "client_kwargs": {"scope": "openid"}}) == {"default": METADATA}


def test_several_with_names() -> None:
    assert read_providers({**SHARED, "google": OWN, "Keycloak": OWN}) == {
        "google": METADATA,
        "Keycloak": METADATA,
    }
    assert list(read_providers({**WHOLE, "google": OWN})) == ["default", "google"]
    assert list(read_providers({**SHARED, "default": OWN})) == ["default"]


@pytest.mark.parametrize("key", WHOLE)
@pytest.mark.parametrize("value", [None, "", " ", 5], ids=repr)
def test_what_is_missing_is_named(key: str, value: object) -> None:
    with pytest.raises(SettingsError) as raised:
        read_providers({**WHOLE, key: value})
    assert f"“[auth] {key}”" in str(raised.value)
    assert "secrets.toml" in str(raised.value)


def test_an_empty_section_is_a_wrong_one_and_not_none() -> None:
    with pytest.raises(SettingsError, match="redirect_uri"):
        read_providers({})


@pytest.mark.parametrize(
    ("changes", "named", "why"),
    [
        ({"cookie_secret": "changeme"}, "[auth] cookie_secret", "32 random characters"),
        ({"redirect_uri": "https://chat.example.com/"}, "[auth] redirect_uri", "/oauth2callback"),
        ({"redirect_uri": "chat.example.com/oauth2callback"}, "[auth] redirect_uri", "https://"),
        ({"server_metadata_url": "id.example.com"}, "[auth] server_metadata_url", "well-known"),
        ({"my_google": OWN}, "[auth.my_google]", "underscore"),
        ({"google": {**OWN, "client_id": ""}}, "[auth.google] client_id", "secrets.toml"),
    ],
)
def test_what_cant_be_safe_or_work_is_refused(
    changes: dict[str, Any], named: str, why: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        read_providers({**WHOLE, **changes})
    assert f"“{named}”" in str(raised.value)
    assert why in str(raised.value)
    assert "changeme" not in str(raised.value)
    assert "有误" in raised.value.sentence(catalogue("zh"))


def test_a_provider_that_doesnt_answer_is_said_with_its_address() -> None:
    url = f"http://127.0.0.1:{free_port()}/.well-known/openid-configuration"
    with pytest.raises(SignInProviderError, match=f"{url} .*ConnectError"):
        check_provider(url)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
TRICKLES = {
    "head": (HEAD, b"X: y\r\n", 0.05),
    "body": (HEAD + b"\r\n{", b" ", 0.05),
    "endless": (HEAD + b"\r\n{", b" " * 65_536, 0.0),
}


@contextmanager
def provider_that_never_ends(first: bytes, more: bytes, pause_s: float) -> Iterator[Provider]:
    """One that goes on sending until its connection is closed."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(first)
            try:
                while not stopped.wait(pause_s):
                    self.request.sendall(more)
            except OSError:
                closed.set()

    stopped, closed = threading.Event(), threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Provider(f"http://127.0.0.1:{server.server_address[1]}/metadata", closed)
        stopped.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", TRICKLES)
def test_a_provider_whose_answer_never_ends_holds_nobody(kind: str) -> None:
    limit_s = 60.0 if kind == "endless" else 1.0
    failed: list[SignInProviderError] = []

    def check() -> None:
        try:
            check_provider(provider.url, limit_s)
        except SignInProviderError as error:
            failed.append(error)

    with provider_that_never_ends(*TRICKLES[kind]) as provider:
        thread = threading.Thread(target=check, daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive(), "it is still being listened to"
        assert failed[0].values["kind"] == ("ValueError" if kind == "endless" else "TimeoutError")
        assert provider.closed.wait(30), "the connection is still open"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("https://a", "b"), ("https://b", "a")),
        (("https://a", "b c"), ("https://a b", "c")),
        (("https://a", '","'), ('https://a","', "")),
        (("https://a", "Ann"), ("https://a", "ann")),
        (("https://a", "ann"), ("https://a/", "ann")),
    ],
)
def test_two_identities_are_two_owners(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert owner_id(*one) == owner_id(*one)
    assert owner_id(*one) != owner_id(*other)
    assert len(owner_id(*one)) == 64


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AppTest:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEADY_CHAT_BACKENDS", "scripted")
    monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path))
    st.cache_resource.clear()
    return AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=30)


def test_a_button_for_each_provider(page: AppTest) -> None:
    page.secrets["auth"] = {**WHOLE, "google": OWN}
    page.run()
    assert not page.exception
    assert [button.label for button in page.button] == ["Sign in", "Sign in with google"]
    assert not page.sidebar.children
    assert not page.chat_input
    page.radio(key="language").set_value("zh").run()
    assert page.button[0].label == "登录"
    st.cache_resource.clear()


def test_nobody_asks_as_somebody_once_nobody_is_signed_in(page: AppTest) -> None:
    """Callbacks run before the page sees that a sign-in is over."""

    def script() -> None:
        import streamlit as st

        from llm.errors import LLMError
        from ui.conversation_id import person
        from ui.owner import owner

        for who in (owner, person):
            try:
                st.text(who())
            except LLMError as error:
                st.text(type(error).__name__)

    app = AppTest.from_function(script)
    app.secrets["auth"] = WHOLE
    app.run()
    assert [text.value for text in app.text] == [NotSignedInError.__name__] * 2
    st.cache_resource.clear()


def test_without_sign_in_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        f"app = AppTest.from_file({str(ROOT / 'streamlit_app.py')!r}, default_timeout=60).run()\n"
        "assert not app.exception and app.chat_input and not app.button(key='clear').disabled\n"
        "names = {name.partition('.')[0] for name in sys.modules}\n"
        "print(*sorted(names & {'authlib', 'joserfc', 'cryptography', 'httpx', 'httpx2'}))\n"
        "import os; sys.stdout.flush(); os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_DATA_DIR": str(tmp_path),
            "HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
