"""A real Chromium and real Streamlit servers for the tests in this folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.browser.sign_in import SignInApp, provider, write_secrets

# Two busy cores may take their time; no test waits for a time to pass.
expect.set_options(timeout=30_000)

ROOT = Path(__file__).parents[2]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
StartServer = Callable[..., str]


def _artifacts() -> Path:
    named = os.environ.get("STEADY_CHAT_ARTIFACTS")
    folder = Path(named) if named else Path(tempfile.gettempdir()) / "steady-chat-artifacts"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Where screenshots are kept, outside the repository."""
    return _artifacts()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails says what its pages said, and keeps their pictures."""
    report = yield
    browser = getattr(item, "funcargs", {}).get("chromium")
    if report.failed and call.when == "call" and browser is not None:
        pages = [page for context in browser.contexts for page in context.pages]
        for number, page in enumerate(pages[-3:], start=1):
            with suppress(PlaywrightError):
                report.sections.append((f"page {number}", page.inner_text("body", timeout=5000)))
                name = re.sub(r"\W+", "-", item.name)
                page.screenshot(path=_artifacts() / f"failed-{name}-{number}.png", timeout=5000)
    return report


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for the whole session; open a context of your own in it and close that."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if executable is None:
        pytest.fail("no Chromium here: run `make browser`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def streamlit_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """A function `(script, *options, cwd=…, env=…) -> address` that starts a Streamlit server.

    Servers are stopped when the session ends. Their output is in a file whose path is part of the
    message when one does not start.
    """
    running: list[subprocess.Popen[bytes]] = []

    def start(
        script: Path | str,
        *options: str,
        cwd: Path = ROOT,
        env: dict[str, str] | None = None,
        timeout_s: float = 60,
    ) -> str:
        port = free_port()
        log = tmp_path_factory.mktemp("streamlit") / "server.log"
        command = [sys.executable, "-m", "streamlit", "run", str(script), *options]
        command += ["--server.headless", "true", "--server.port", str(port)]
        command += ["--server.address", "127.0.0.1", "--browser.gatherUsageStats", "false"]
        command += ["--server.fileWatcherType", "none"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "STEADY_CHAT_DATABASE_URL": f"sqlite:///{log.parent / 'conversations.sqlite3'}",
                    **(env or {}),
                },
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        running.append(process)
        address = f"http://127.0.0.1:{port}"
        wait_until_healthy(address, process, log, timeout_s)
        return address

    yield start
    for process in running:
        process.terminate()
    for process in running:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def sign_in_app(
    chromium: Browser, streamlit_server: StartServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SignInApp]:
    """The app with signing in: `open_as("ann")` is Ann's chat, in a browser of her own."""
    folder = tmp_path_factory.mktemp("sign-in")
    scripts = folder / "scripts.json"
    scripts.write_text(json.dumps({"default": {"text": "You asked: {question}"}}), encoding="utf-8")
    with provider(folder / "provider.log", free_port()) as issuer:
        secrets = write_secrets(folder, issuer)
        address = streamlit_server(
            ROOT / "streamlit_app.py",
            *("--secrets.files", str(secrets)),
            env={
                "STEADY_CHAT_BACKENDS": "scripted",
                "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
                "STEADY_CHAT_DATA_DIR": str(folder),
            },
        )
        app = SignInApp(chromium, address, issuer)
        yield app
        app.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_healthy(
    address: str, process: subprocess.Popen[bytes], log: Path, timeout_s: float
) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"streamlit ended with {process.returncode}, see {log}: {log.read_text()}")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"streamlit was not healthy after {timeout_s} s, see {log}")
