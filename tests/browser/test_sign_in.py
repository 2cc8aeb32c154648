"""Signing in at a real provider, in a real browser."""

from __future__ import annotations

import json
import re
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from playwright.sync_api import Browser, Page, expect
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from llm.catalogue import catalogue
from tests.browser.chat_page import INPUT
from tests.browser.conftest import ROOT, StartServer
from tests.browser.sign_in import (
    COOKIE_SECRET,
    PEOPLE,
    SignInApp,
    provider,
    sign_in,
    sign_out,
    write_secrets,
)
from tests.deploy_tools import DEPLOY, Proxy, free_port, render, write_certificate
from ui.owner import LOCAL, SIGN_IN_LIFE_S, owner_id

pytestmark = pytest.mark.browser

SIDEBAR = '[data-testid="stSidebar"]'
ALERT = '[data-testid="stAlert"]'
NO_CALLS = "window.BroadcastChannel = class { postMessage() {} close() {} };"


def expect_the_sign_in_screen(page: Page, language: str = "en") -> None:
    """It, and not a word more."""
    say = catalogue(language).say
    expect(page.locator('[class*="st-key-sign_in_"] button')).to_have_text(
        re.compile(rf"{say('sign-in')}$")
    )
    expect(page.get_by_text(say("sign-in-explain"))).to_be_visible()
    expect(page.locator(SIDEBAR)).to_have_count(0)
    expect(page.locator(INPUT)).to_have_count(0)
    words = [say("app-title"), say("sign-in-explain"), say("sign-in")]
    words += ["Language / 语言", "English", "简体中文"]
    words.insert(2, "login")  # the button's icon is a word in an icon font
    expect(page.locator('[data-testid="stMain"]')).to_have_text(
        " ".join(words), use_inner_text=True
    )


def test_signed_out_there_is_nothing_at_any_address(
    sign_in_app: SignInApp, artifacts: Path
) -> None:
    ann = sign_in_app.open_as("ann")
    ann.ask("something of Ann's own")
    ann.wait_until_done()
    ann.page.wait_for_url(re.compile(r"\?c="))
    query = ann.page.url.partition("?")[2]
    stranger = sign_in_app.browser().new_page()
    received: list[bytes] = []
    stranger.on(
        "websocket",
        lambda socket: socket.on(
            "framereceived",
            lambda frame: received.append(frame if isinstance(frame, bytes) else frame.encode()),
        ),
    )
    for path in ("/", f"/?{query}", f"/setup?{query}", "/setup", "/chat", "/chat_page"):
        stranger.goto(sign_in_app.address + path)
        expect_the_sign_in_screen(stranger)
    assert any(catalogue("en").say("sign-in-explain").encode() in frame for frame in received)
    assert not any(b"something of Ann" in frame or b"STEADY_CHAT" in frame for frame in received)
    stranger.screenshot(path=artifacts / "sign-in.png")
    assert ann.failures == []


def test_no_route_says_more_to_who_hasnt_signed_in(sign_in_app: SignInApp) -> None:
    def status(path: str, body: bytes | None = None) -> int:
        request = urllib.request.Request(sign_in_app.address + path, data=body)
        try:
            with urllib.request.urlopen(request) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code

    assert status("/_stcore/health") == 200
    assert status("/steady/paint", b'{"token": "guessed", "busy_ms": 5}') == 403
    # Streamlit's way in for programs, and its run of the script for whoever asks: both off.
    assert status("/_stcore/agent/interact", b"{}") in (403, 404)
    asked = urllib.request.urlopen(f"{sign_in_app.address}/_stcore/script-health-check")
    assert asked.headers["Content-Type"].startswith("text/html")  # the page, no run


def test_who_signs_in_gets_to_the_address_that_they_asked_for(sign_in_app: SignInApp) -> None:
    ann = sign_in_app.open_as("ann")
    ann.ask("Where was this?")
    ann.wait_until_done()
    ann.page.wait_for_url(re.compile(r"\?c="))
    address = ann.page.url
    again = sign_in_app.open_as("ann", address.removeprefix(sign_in_app.address))
    again.page.wait_for_url(address)
    expect(again.questions).to_have_text(["Where was this?"])
    again.page.goto(f"{sign_in_app.address}/")  # and not a second time
    again.page.wait_for_selector(INPUT)
    expect(again.questions).to_have_count(0)


def test_signing_out_ends_it_in_every_tab_and_for_nobody_else(sign_in_app: SignInApp) -> None:
    ann, bob = sign_in_app.open_as("ann"), sign_in_app.open_as("bob")
    expect(ann.page.locator(SIDEBAR)).to_contain_text("Signed in as Ann *Example*")
    expect(bob.page.locator(SIDEBAR)).to_contain_text("Signed in as Bob")
    second, deaf = ann.context.new_page(), ann.context.new_page()
    deaf.add_init_script(NO_CALLS)
    for tab in (second, deaf):
        tab.goto(sign_in_app.address)
        tab.wait_for_selector(INPUT)
    kept = ann.context.cookies()
    sign_out(ann.page)
    expect_the_sign_in_screen(ann.page)
    expect_the_sign_in_screen(second)
    # A tab that wasn't called finds out at its next look, without anything being done in it.
    expect_the_sign_in_screen(deaf)
    assert not any(cookie["name"] == "_streamlit_user" for cookie in ann.context.cookies())
    # Nor does a copy of the cookie bring it back.
    ann.context.add_cookies([each for each in kept if "_streamlit_user" in each["name"]])
    ann.page.goto(sign_in_app.address)
    expect_the_sign_in_screen(ann.page)
    bob.page.reload()
    bob.page.wait_for_selector(INPUT)
    ann.page.goto(sign_in_app.address)
    sign_in(ann.page, "bob")  # somebody else at the same machine
    ann.page.wait_for_selector(INPUT)
    expect(ann.page.locator(SIDEBAR)).to_contain_text("Signed in as Bob")


def test_who_doesnt_sign_in_after_all_is_back_at_the_sign_in_screen(
    sign_in_app: SignInApp,
) -> None:
    page = sign_in_app.browser().new_page()
    page.goto(sign_in_app.address)
    page.locator('[class*="st-key-sign_in_"] button').click()
    page.get_by_role("button", name="Deny").click()
    expect_the_sign_in_screen(page)


def test_in_chinese_and_the_choice_is_kept(sign_in_app: SignInApp, artifacts: Path) -> None:
    page = sign_in_app.browser("zh-CN").new_page()
    page.goto(sign_in_app.address)
    expect_the_sign_in_screen(page, "zh")
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    page.screenshot(path=artifacts / "sign-in.zh.png")
    english = sign_in_app.browser("en-US").new_page()
    english.goto(sign_in_app.address)
    english.get_by_text("简体中文").click()
    expect_the_sign_in_screen(english, "zh")
    sign_in(english, "ann")
    english.wait_for_selector(INPUT)
    expect(english.locator(SIDEBAR)).to_contain_text("已登录：Ann *Example*")
    expect(english.locator(SIDEBAR)).to_contain_text("退出登录")


def user_cookie(app: SignInApp, issued_s: float, **claims: object) -> dict[str, str]:
    """The cookie that Streamlit gives who has signed in."""
    told = {"iss": app.provider, "sub": "ann", "iat": int(issued_s), **claims}
    told |= {"origin": app.address, "is_logged_in": True, "provider": "default"}
    value = create_signed_value(COOKIE_SECRET, "_streamlit_user", json.dumps(told))
    return {"name": "_streamlit_user", "value": value.decode(), "url": app.address}


def test_a_sign_in_is_over_after_thirty_days_also_in_a_session_that_stays_open(
    sign_in_app: SignInApp,
) -> None:
    # Where the machine is so busy that it is over before the page is there: another, with more.
    for rest_s in (10, 40, 160, 640):
        context = sign_in_app.browser()
        end_s = int(time.time()) + rest_s
        context.add_cookies([user_cookie(sign_in_app, end_s - SIGN_IN_LIFE_S)])
        page = context.new_page()
        page.goto(sign_in_app.address)
        page.wait_for_selector(f'{INPUT}, [class*="st-key-sign_in_"] button')
        if page.locator(INPUT).count():
            break
        assert time.time() > end_s, "it counted as over before its end"
    expect(page.locator(SIDEBAR)).to_contain_text("Sign out")
    page.wait_for_function(
        "(end) => Date.now() > end", arg=end_s * 1000, timeout=(rest_s + 30) * 1000
    )
    # Nobody clicks: the page looks for itself, and would be gone under a click.
    expect_the_sign_in_screen(page)


@pytest.mark.parametrize(
    "claims", [{"sub": None}, {"sub": ""}, {"iss": None}, {"iat": None}], ids=str
)
def test_a_sign_in_that_names_nobody_is_none(
    sign_in_app: SignInApp, claims: dict[str, object]
) -> None:
    context = sign_in_app.browser()
    context.add_cookies([user_cookie(sign_in_app, time.time(), **claims)])
    page = context.new_page()
    page.goto(sign_in_app.address)
    expect_the_sign_in_screen(page)


def test_a_cookie_of_ones_own_making_is_nobodys(sign_in_app: SignInApp) -> None:
    context = sign_in_app.browser()
    made = user_cookie(sign_in_app, time.time())
    told = {"iss": sign_in_app.provider, "sub": "ann", "iat": int(time.time())}
    told |= {"origin": sign_in_app.address, "is_logged_in": True, "provider": "default"}
    forged = create_signed_value("another secret", "_streamlit_user", json.dumps(told))
    context.add_cookies([{**made, "value": forged.decode()}])
    page = context.new_page()
    page.goto(sign_in_app.address)
    expect_the_sign_in_screen(page)


@pytest.fixture(scope="module")
def owner_page(
    sign_in_app: SignInApp, streamlit_server: StartServer, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A page that says who its owner is, with the same provider."""
    path = write_secrets(tmp_path_factory.mktemp("owner"), sign_in_app.provider)
    script = ROOT / "tests" / "browser" / "pages" / "owner_page.py"
    return streamlit_server(script, "--secrets.files", str(path))


def test_each_person_is_one_owner_whatever_the_browser(
    sign_in_app: SignInApp, owner_page: str
) -> None:
    seen = []
    for sub in ("ann", "bob", "ann"):
        page = sign_in_app.browser().new_page()
        page.goto(owner_page)
        sign_in(page, sub)
        codes = page.locator('[data-testid="stCode"]')
        expect(codes).to_have_count(2)
        seen.append(tuple(text.strip() for text in codes.all_inner_texts()))
    ann, bob = (owner_id(sign_in_app.provider, sub) for sub in ("ann", "bob"))
    assert ann != bob
    # The queue is fair between people, not between their tabs.
    assert seen == [(ann, ann), (bob, bob), (ann, ann)]


def test_without_sign_in_everybody_is_the_local_owner_and_asks_for_each_browser(
    chromium: Browser, streamlit_server: StartServer
) -> None:
    address = streamlit_server(ROOT / "tests" / "browser" / "pages" / "owner_page.py")
    seen = []
    for _ in range(2):
        page = chromium.new_page()
        page.goto(address)
        codes = page.locator('[data-testid="stCode"]')
        expect(codes).to_have_count(2)
        seen.append(codes.all_inner_texts())
        expect(page.locator(".st-key-sign_out")).to_have_count(0)
        page.close()
    assert [owner.strip() for owner, _ in seen] == [LOCAL, LOCAL]
    assert seen[0][1] != seen[1][1]


StartWith = Callable[[str], str]


@pytest.fixture
def start_with(streamlit_server: StartServer, tmp_path: Path) -> StartWith:
    """Starts the app with this secrets.toml."""

    def start(secrets: str) -> str:
        path = tmp_path / "secrets.toml"
        path.write_text(secrets, encoding="utf-8")
        return streamlit_server(
            ROOT / "streamlit_app.py",
            *("--secrets.files", str(path)),
            env={"STEADY_CHAT_BACKENDS": "scripted", "STEADY_CHAT_DATA_DIR": str(tmp_path)},
        )

    return start


@pytest.mark.parametrize(
    ("secrets", "said"),
    [
        (
            '[auth]\nredirect_uri = "http://localhost:8501/oauth2callback"\n',
            "“[auth] cookie_secret” is not right",
        ),
        ("[auth\n", "secrets.toml” is not right: the file isn’t valid TOML"),
    ],
    ids=["incomplete", "unreadable"],
)
def test_a_sign_in_that_isnt_set_up_wholly_opens_nothing_and_says_what_to_do(
    chromium: Browser, start_with: StartWith, secrets: str, said: str
) -> None:
    page = chromium.new_page()
    page.goto(start_with(secrets))
    expect(page.locator(ALERT)).to_contain_text(said)
    expect(page.locator(INPUT)).to_have_count(0)
    assert "Traceback" not in page.content()
    page.close()


def test_a_provider_that_isnt_there_is_a_sentence(
    chromium: Browser, start_with: StartWith, tmp_path: Path
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    page = chromium.new_page()
    page.goto(start_with(write_secrets(tmp_path, nowhere).read_text(encoding="utf-8")))
    page.locator('[class*="st-key-sign_in_"] button').click()
    expect(page.locator(ALERT)).to_contain_text(f"The sign-in at {nowhere}")
    expect(page.locator('[class*="st-key-sign_in_"] button')).to_be_visible()
    page.close()


@pytest.fixture
def behind_nginx(
    chromium: Browser, streamlit_server: StartServer, tmp_path: Path
) -> Iterator[SignInApp]:
    """The app behind the proxy of deploy/ with HTTPS, and a provider that says a lot of everybody.

    Some do: each group that a person is in. The cookies are then several times 4 KB.
    """
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    line_length = re.search(r"WEBSOCKETS_MAX_LINE_LENGTH=(\d+)", dockerfile)
    assert line_length is not None
    write_certificate(trustme.CA(), tmp_path)
    port, tls_port = free_port(), free_port()
    # At random: the cookies are compressed.
    groups = [secrets.token_hex(16) for _ in range(150)]
    people = {sub: {**claims, "groups": groups} for sub, claims in PEOPLE.items()}
    address = f"https://localhost:{tls_port}"
    with provider(tmp_path / "provider.log", free_port(), people) as issuer:
        path = write_secrets(tmp_path, issuer, app_address=address)
        app = streamlit_server(
            ROOT / "streamlit_app.py",
            *("--secrets.files", str(path)),
            env={
                "STEADY_CHAT_BACKENDS": "scripted",
                "STEADY_CHAT_DATA_DIR": str(tmp_path),
                "WEBSOCKETS_MAX_LINE_LENGTH": line_length[1],
            },
        )
        configuration = render(
            f"127.0.0.1:{port}",
            f"server {app.removeprefix('http://')};",
            marks=("tls",),
            listen_tls=f"127.0.0.1:{tls_port}",
            tls_folder=tmp_path,
        )
        proxy = Proxy(tmp_path, configuration, f"http://127.0.0.1:{port}")
        proxy.start()
        people_there = SignInApp(chromium, address, issuer)
        yield people_there
        people_there.close()
        proxy.stop(kill=True)
        log = proxy.log.read_text()
        assert "GET /oauth2callback" in log
        assert "code=" not in log


def test_behind_nginx_over_https_even_with_long_tokens(behind_nginx: SignInApp) -> None:
    context = behind_nginx.browser(ignore_https_errors=True)
    ann = behind_nginx.open_as("ann", context=context)
    expect(ann.page.locator(SIDEBAR)).to_contain_text("Signed in as Ann")
    cookies = {each["name"]: each for each in context.cookies() if "streamlit_user" in each["name"]}
    assert len(cookies) > 4, "too short to prove anything"
    assert all(each["secure"] and each["httpOnly"] for each in cookies.values())
    ann.ask("over HTTPS")
    ann.wait_until_done()
    sign_out(ann.page)
    expect_the_sign_in_screen(ann.page)
