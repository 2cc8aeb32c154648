"""The chat as a person uses it: ask, wait, look, touch the sidebar. The same for every page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from benchmarks.answers import WARM_UP_MARK, WARM_UP_QUESTION
from benchmarks.browser_probe import Probe, open_page
from benchmarks.server import ROOT, Server, serve

APP = "app"
SCRIPTS = {
    APP: ROOT / "streamlit_app.py",
    "per_token": Path(__file__).parent / "pages" / "per_token.py",
    "write_stream": Path(__file__).parent / "pages" / "write_stream.py",
}
"""What is compared: a name, and the script that Streamlit runs."""


@dataclass(frozen=True, slots=True)
class Touch:
    """A click in the sidebar, and what only the server's answer to it brings there.

    Args:
        target: the exact text that is clicked.
        selector: where the effect shows, within the sidebar.
        effect: the text that it then has.
    """

    target: str
    selector: str
    effect: str


LANGUAGE_TOUCHES = (
    Touch("简体中文", "[data-testid=stSlider]", "温度"),
    Touch("English", "[data-testid=stSlider]", "Temperature"),
)
BUTTON_TOUCHES = (Touch("Hide", "button", "Show"), Touch("Show", "button", "Hide"))
TOUCHES = {APP: LANGUAGE_TOUCHES, "per_token": BUTTON_TOUCHES, "write_stream": BUTTON_TOUCHES}
"""What is clicked on each page, in turns: the app's language, the other pages' one button."""

PAGE_TIMEOUT_S = 60
CALM_S = 2.0


class NotShownError(Exception):
    """What was waited for did not come on the screen in time."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A page under observation, and the server behind it."""

    server: Server
    probe: Probe

    def ask(self, question: str) -> float:
        """Type the question, send it; returns when it was sent."""
        field = self.probe.page.get_by_test_id("stChatInputTextArea")
        field.fill(question)
        field.press("Enter")
        sent_at = self.probe.read().input_at
        assert sent_at is not None
        return sent_at

    def ask_and_wait(self, question: str, mark: str, timeout_s: float = PAGE_TIMEOUT_S) -> None:
        """Ask and wait until `mark` is on the screen."""
        self.probe.watch("mark", mark)
        self.ask(question)
        if self.probe.wait_seen("mark", timeout_s, every_ms=50) is None:
            raise NotShownError(f"no “{mark}” within {timeout_s} s")

    def warm_up(self) -> None:
        """A short answer with code and a formula first, so that the browser has loaded both."""
        self.ask_and_wait(WARM_UP_QUESTION, WARM_UP_MARK)
        self.settle()

    def settle(self) -> None:
        """Let the page come to rest."""
        self.probe.page.wait_for_timeout(CALM_S * 1000)

    def shown(self) -> str:
        """The text of the newest message, what is scrolled out of sight too."""
        return self.probe.page.get_by_test_id("stChatMessage").last.text_content() or ""

    def at_the_end(self) -> bool:
        """Whether the reader has been kept at the end of the conversation."""
        return bool(self.probe.page.evaluate(_AT_THE_END_JS))

    def turns_shown(self) -> int:
        """How many of the app's turns are on the page."""
        return self.probe.page.locator('[class*="st-key-turn-"]').count()

    def clear_history(self) -> None:
        """Clear the app's conversation, as a person does."""
        page = self.probe.page
        sidebar = page.get_by_test_id("stSidebar")
        sidebar.get_by_test_id("stPopover").get_by_role("button", name="Clear history").click()
        page.locator(".st-key-clear_yes button").click()
        page.locator(".st-key-clear button").wait_for(timeout=PAGE_TIMEOUT_S * 1000)
        self.settle()

    def show_all_turns(self) -> None:
        """Press the app's button for earlier turns until all are on the page."""
        page = self.probe.page
        earlier = page.locator(".st-key-earlier button")
        while earlier.is_visible():
            label = earlier.inner_text()
            earlier.click()
            # The last press takes the button away, perhaps only after a while.
            page.wait_for_function(_OTHER_LABEL_JS, arg=label, timeout=PAGE_TIMEOUT_S * 1000)
            self.settle()

    def touch_sidebar(self, touch: Touch, timeout_s: float) -> float | None:
        """Click in the sidebar; seconds from the press until the effect is painted.

        The server has put it there: it is in a live element of the new script run.

        None if it wasn't in time.
        """
        live = self.probe.page.get_by_test_id("stSidebar").locator('[data-stale="false"]')
        self.probe.watch_sidebar("effect", touch.selector, touch.effect)
        live.get_by_text(touch.target, exact=True).click()
        clicked_at = self.probe.read().input_at
        seen_at = self.probe.wait_seen("effect", timeout_s, every_ms=50)
        return seen_at - clicked_at if seen_at and clicked_at else None


_OTHER_LABEL_JS = """(label) =>
  document.querySelector('.st-key-earlier button')?.innerText !== label"""
_AT_THE_END_JS = """() => {
  let box = [...document.querySelectorAll('[data-testid=stChatMessage]')].at(-1);
  while (box && !(box.scrollHeight > box.clientHeight + 1
      && /auto|scroll/.test(getComputedStyle(box).overflowY))) box = box.parentElement;
  return !box || box.scrollHeight - box.scrollTop - box.clientHeight < 40;
}"""


@contextmanager
def open_chat(browser: Browser, name: str, scripts_file: Path) -> Iterator[Chat]:
    """A server of its own for the page `name`, a fresh tab on it, and the warm-up done."""
    with serve_chat(name, scripts_file) as server, open_tab(browser, server) as chat:
        yield chat


@contextmanager
def serve_chat(name: str, scripts_file: Path) -> Iterator[Server]:
    """A server of its own for the page `name`."""
    environment = {
        "STEADY_CHAT_BACKENDS": "scripted",
        "STEADY_CHAT_SCRIPTS_FILE": str(scripts_file),
        "STEADY_CHAT_MAX_TOKENS": "1000000",
        "STEADY_CHAT_LANGUAGE": "en",
        "STEADY_CHAT_CACHE": "off",
    }
    with serve(SCRIPTS[name], environment) as server:
        yield server


@contextmanager
def open_tab(browser: Browser, server: Server, script: str = "") -> Iterator[Chat]:
    """A fresh tab on the server with a conversation of its own, and the warm-up done.

    Args:
        script: JavaScript that runs before the page's own.
    """
    with open_page(browser, server.url, script) as probe:
        chat = Chat(server, probe)
        field = probe.page.get_by_test_id("stChatInputTextArea")
        try:
            field.wait_for(timeout=PAGE_TIMEOUT_S * 1000)
        except PlaywrightTimeoutError:
            raise NotShownError(f"no chat input; the server said:\n{server.said()}") from None
        chat.settle()
        chat.warm_up()
        yield chat
