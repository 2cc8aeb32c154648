"""The doctor's page, by Streamlit's AppTest, and what it tells of this installation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit import config
from streamlit.runtime.context import ContextProxy, StreamlitHeaders
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from llm.catalogue import catalogue
from llm.doctor import DoctorRun, Finding
from llm.doctor_access import AccessCheck, ApiCheck, is_loopback
from llm.doctor_mask import Mask
from llm.doctor_report import report_of
from llm.errors import Reason
from llm.types import CancelToken
from tests.deploy_tools import free_port
from ui import doctor_streamlit, resources
from ui.doctor_streamlit import OptionCheck, option_checks, own_options

ROOT = Path(__file__).parents[1]
LONG_S = 120

SECRETS = ["db-p4ss", "r3dis-p4ss", "k3y-of-one", "us3r-p4ss", "qu3ry-p4ss", "hf_t0kent0ken"]


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Servers and stores with secrets, none of which is there."""
    monkeypatch.chdir(tmp_path)
    port = free_port()
    server = {
        "name": "gpu-1",
        "base_url": f"http://ann:us3r-p4ss@127.0.0.1:{port}/v1?key=qu3ry-p4ss",
        "api_key": "k3y-of-one",
    }
    for name, value in {
        "BACKENDS": "scripted,local,vllm",
        "MODEL": str(tmp_path / "no-such-model"),
        "DATA_DIR": str(tmp_path),
        "DATABASE_URL": f"postgresql+psycopg://dbuser:db-p4ss@127.0.0.1:{port}/chat",
        "REDIS_URL": f"redis://reader:r3dis-p4ss@127.0.0.1:{port}/0",
        "SERVERS": json.dumps([server]),
        "LIST_HUB_CACHE": "false",
    }.items():
        monkeypatch.setenv(f"STEADY_CHAT_{name}", value)
    monkeypatch.setenv("HF_TOKEN", "hf_t0kent0ken")
    st.cache_resource.clear()
    yield
    resources.cache().close()
    resources.chat().close()
    resources.server_alone("gpu-1").close()
    st.cache_resource.clear()


def page() -> AppTest:
    app = AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=LONG_S)
    app._page_hash = calc_hash("doctor")
    return app.run()


def last_round() -> DoctorRun:
    run = resources.doctor().last
    assert run is not None
    return run


def shown(app: AppTest) -> str:
    """All that the page holds, sidebar included."""
    parts = [*app.get("html"), *app.markdown, *app.caption, *app.warning, *app.error, *app.code]
    told = [str(getattr(each, "body", "") or getattr(each, "value", "")) for each in parts]
    return "\n".join([*told, *(str(each.proto) for each in app.get("html"))])


def test_a_press_tells_of_every_part_and_no_secret() -> None:
    words = catalogue("en")
    app = page()
    assert not app.exception
    assert app.button(key="doctor_copy").disabled
    app.button(key="doctor_start").click().run()
    assert not app.exception
    text = shown(app)
    for said in (
        "doctor-group-local",
        "doctor-group-stores",
        "doctor-group-streamlit",
        "doctor-database-gone",
        "doctor-check-disk",
    ):
        assert words.say(said) in text, said
    assert "gpu-1" in text
    run = last_round()
    assert run.over
    found = {each.reason.message_id for each in run.findings if each is not None}
    assert {"error-server-unreachable", "doctor-redis-failed", "doctor-folder-ok"} <= found
    app.button(key="doctor_copy").click().run()
    assert not app.exception
    _, note = app.session_state["note"]
    assert note.text.startswith("# ")
    assert words.say("doctor-database-gone") in note.text
    chinese = report_of(run, catalogue("zh"), Mask.of(resources.settings()))
    assert catalogue("zh").say("doctor-database-gone") in str(chinese)
    for everything in (text, note.text, shown(app), str(chinese)):
        for secret in SECRETS:
            assert secret not in everything, secret


def test_what_is_told_is_no_more_than_the_setup_page_shows() -> None:
    """No host, no user, no path of a store: that page masks their addresses whole."""
    app = page()
    app.button(key="doctor_start").click().run()
    run = last_round()
    values = {
        str(value)
        for each in run.findings
        if each is not None
        for value in each.reason.values.values()
    }
    setup = "\n".join(resources.settings().shown().values())
    for place in ("dbuser", "reader", "ann", "/chat", str(Path.home())):
        assert not [value for value in values if place in value], place
    urls = {value for value in values if "://" in value}
    assert urls
    assert all(url.partition("/v1")[0] in setup for url in urls)


def test_a_second_person_is_given_the_first_ones_round() -> None:
    first, second = page(), page()
    runs = []
    for app in (first, second):
        app.button(key="doctor_start").click().run()
        runs.append(last_round())
    # Unless the first one's page took longer to draw than a round rests.
    assert runs[0] is runs[1] or runs[0].over_for_s > runs[1].over_for_s


def test_who_gets_in_is_told_to_each_page_by_how_it_was_reached(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Whoever pressed first."""
    monkeypatch.setattr("llm.doctor.REST_S", 3600.0)
    address = st.get_option("server.address")
    request.addfinalizer(lambda: config.set_option("server.address", address))
    config.set_option("server.address", "localhost")
    told = catalogue("en").say
    here, through_proxy = page(), page()
    here.button(key="doctor_start").click().run()
    with monkeypatch.context() as of_the_other:
        # AppTest's pages are reached by no request at all.
        headers = StreamlitHeaders([("x-forwarded-for", "203.0.113.7")])
        of_the_other.setattr(ContextProxy, "headers", headers)
        through_proxy.button(key="doctor_start").click().run()
        through_proxy.button(key="doctor_copy").click().run()
    here.run()
    for app, said, unsaid in (
        (here, "doctor-access-here", "doctor-access-proxy"),
        (through_proxy, "doctor-access-proxy", "doctor-access-here"),
    ):
        assert told(said) in shown(app)
        assert told(unsaid) not in shown(app)
    _, note = through_proxy.session_state["note"]
    assert told("doctor-access-proxy") in note.text


def test_the_last_round_is_there_for_who_comes_later_with_its_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a reload, too, which is a new session."""
    page().button(key="doctor_start").click().run()
    run = last_round()
    later = page()
    assert catalogue("en").say("doctor-database-gone") in shown(later)
    assert later.button(key="doctor_start").label == "Check again"
    assert not later.button(key="doctor_copy").disabled
    assert last_round() is run, "looking is no press"
    monkeypatch.setattr(run, "began_at_s", 1_764_493_200.0)
    assert "checked at 2025-11-30 " in shown(page())


# -- how the app is run --


def found_by(check: OptionCheck | AccessCheck | ApiCheck) -> tuple[str, str]:
    finding: Finding = check.run(CancelToken())
    return finding.level, finding.reason.message_id


def test_the_apps_own_file_is_as_it_wants_it() -> None:
    wanted = own_options()
    assert wanted["runner.postScriptGC"] is False
    assert wanted["server.fileWatcherType"] == "none"
    for check in option_checks():
        assert isinstance(check, OptionCheck)
        asked = OptionCheck(check.option, check.wanted, check.wanted)
        assert found_by(asked)[0] == "ok"
        assert st.get_option(check.option) == check.found


@pytest.mark.parametrize(
    ("option", "wanted", "found", "expected"),
    [
        ("runner.postScriptGC", False, True, ("warn", "doctor-option-collect")),
        ("server.maxMessageSize", 20, 5, ("warn", "doctor-option-message")),
        ("server.maxMessageSize", 20, 200, ("ok", "doctor-option-ok")),
        ("server.websocketPingInterval", None, 90, ("warn", "doctor-option-ping")),
        ("server.websocketPingInterval", None, 20, ("ok", "doctor-option-ok")),
        ("server.websocketPingInterval", None, None, ("ok", "doctor-option-unset")),
        ("server.fileWatcherType", "none", "auto", ("warn", "doctor-option-watch")),
        ("server.enableCORS", True, False, ("bad", "doctor-option-cors")),
        ("server.enableXsrfProtection", True, False, ("bad", "doctor-option-xsrf")),
    ],
)
def test_an_option_that_is_off_is_told(
    option: str, wanted: object, found: object, expected: tuple[str, str]
) -> None:
    assert found_by(OptionCheck(option, wanted, found)) == expected


def test_without_the_apps_file_streamlits_own_values_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor_streamlit, "CONFIG", tmp_path / "config.toml")
    assert own_options()["server.enableCORS"] is True


@pytest.mark.parametrize(
    ("address", "forwarded", "signs_in", "expected"),
    [
        ("localhost", False, False, ("ok", "doctor-access-here")),
        ("127.0.0.1", False, False, ("ok", "doctor-access-here")),
        ("::1", False, False, ("ok", "doctor-access-here")),
        ("127.0.0.1", True, False, ("warn", "doctor-access-proxy")),
        ("", False, False, ("warn", "doctor-access-open")),
        ("0.0.0.0", False, False, ("warn", "doctor-access-open")),
        ("::", False, False, ("warn", "doctor-access-open")),
        ("192.168.1.5", False, False, ("warn", "doctor-access-open")),
        ("chat.example", False, False, ("warn", "doctor-access-open")),
        ("0.0.0.0", True, True, ("ok", "doctor-access-signs-in")),
    ],
)
def test_who_gets_in(
    address: str, forwarded: bool, signs_in: bool, expected: tuple[str, str]
) -> None:
    check = AccessCheck(
        Reason("doctor-group-streamlit"), address, forwarded=forwarded, signs_in=signs_in
    )
    assert found_by(check) == expected
    assert is_loopback("unix:///run/app.sock")


@pytest.mark.parametrize(
    ("key", "on_loopback", "expected"),
    [
        (False, False, ("ok", "doctor-api-off")),
        (False, True, ("ok", "doctor-api-here")),
        (True, True, ("ok", "doctor-api-key")),  # then everybody needs it
    ],
)
def test_who_may_use_the_api(key: bool, on_loopback: bool, expected: tuple[str, str]) -> None:
    group = Reason("doctor-group-streamlit")
    assert found_by(ApiCheck(group, key, on_loopback)) == expected
