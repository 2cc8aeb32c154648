"""What an open page does when its server goes away and comes back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chat_page import INPUT, ChatPage
from tests.browser.conftest import ROOT, free_port, wait_until_healthy

pytestmark = pytest.mark.browser


class Server:
    """A server that can be killed and started again at the same address."""

    def __init__(self, scripts: Path, log: Path) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._scripts, self._log = scripts, log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_SCRIPTS_FILE": str(self._scripts),
            "STEADY_CHAT_DATABASE_URL": f"sqlite:///{self._scripts.with_suffix('.sqlite3')}",
        }
        with self._log.open("ab") as output:
            command = [sys.executable, "-m", "streamlit", "run", "streamlit_app.py"]
            command += ["--server.headless", "true", "--server.port", str(self.port)]
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_until_healthy(self.address, self._process, self._log, 60)

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)
            self._process = None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    scripts = tmp_path / "scripts.json"
    default = {"text": "You asked: {question}", "tokens_per_s": 20}
    scripts.write_text(json.dumps({"default": default}), encoding="utf-8")
    server = Server(scripts, tmp_path / "server.log")
    server.start()
    yield server
    server.kill()


def test_the_first_question_after_a_restart_is_answered_where_the_conversation_stood(
    chromium: Browser, server: Server
) -> None:
    chat = ChatPage.open(chromium, server.address)
    chat.ask("before")
    chat.wait_until_done()
    server.kill()
    expect(chat.page.locator(INPUT)).to_be_disabled()
    server.start()
    expect(chat.page.locator(INPUT)).to_be_enabled(timeout=60_000)
    chat.ask("after")
    chat.wait_for_text("You asked: after")
    chat.wait_until_done(answers=2)
    assert chat.questions.all_inner_texts() == ["before", "after"]
    chat.close()


def test_a_server_killed_in_mid_answer_leaves_an_interrupted_one_and_nothing_spinning(
    chromium: Browser, server: Server
) -> None:
    chat = ChatPage.open(chromium, server.address)
    chat.ask("one two three four five six seven eight nine ten " * 10)
    chat.wait_for_text("four five six")
    server.kill()
    server.start()
    # The database may tell it from one that another process is answering only when that one has
    # been silent for a while.
    expect(chat.page.get_by_text("Interrupted: the app")).to_be_visible(timeout=60_000)
    expect(chat.stop_button).to_be_hidden()
    assert "You asked: one two three" in chat.answer_text()
    chat.ask("after")
    chat.wait_for_text("You asked: after")
    chat.wait_until_done(answers=2)
    chat.close()
