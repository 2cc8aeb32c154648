"""The chat page as a person uses it."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

INPUT = '[data-testid="stChatInputTextArea"]'
LIMIT_MS = 60_000


class ChatPage:
    """One browser tab with the chat open."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self._take(context.new_page())
        self.page.goto(url)
        self.page.wait_for_selector(INPUT)

    def _take(self, page: Page) -> None:
        self.context = page.context
        self.page = page
        self.page.set_default_timeout(LIMIT_MS)
        self.failures: list[str] = []
        self.page.on("pageerror", lambda error: self.failures.append(str(error)))
        self.script_runs = 0
        """How often the server has begun to draw all of the page."""
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count_run))

    @classmethod
    def of(cls, page: Page) -> ChatPage:
        """The chat in a tab that is on its way there."""
        chat = cls.__new__(cls)
        chat._take(page)
        page.wait_for_selector(INPUT)
        return chat

    @classmethod
    def open(
        cls, browser: Browser, url: str, locale: str = "en-US", width: int = 1200, height: int = 850
    ) -> ChatPage:
        """A new person's browser with this page."""
        return cls(
            browser.new_context(locale=locale, viewport={"width": width, "height": height}), url
        )

    def _count_run(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            message = ForwardMsg.FromString(frame)
            whole = not message.metadata.run.fragment_ids
            self.script_runs += message.HasField("new_session") and whole

    def ask(self, question: str) -> None:
        field = self.page.locator(INPUT)
        field.fill(question)
        field.press("Enter")
        expect(field).to_have_value("")

    @property
    def stop_button(self) -> Locator:
        return self.page.locator(".st-key-stop button")

    @property
    def answers(self) -> Locator:
        """The answers' own containers, one a turn, oldest first."""
        return self.page.locator('[class*="st-key-answer-"]')

    @property
    def questions(self) -> Locator:
        return self.page.locator(".steady-question")

    @property
    def receipts(self) -> Locator:
        return self.page.locator(
            '[data-testid="stChatMessage"] [data-testid="stCaptionContainer"]',
            has_text=re.compile(" · "),
        )

    def answer_text(self, index: int = -1) -> str:
        """An answer's text, a block a line, what is scrolled out of sight too."""
        blocks = self.answers.nth(index).get_by_test_id("stMarkdownContainer")
        return "\n".join(blocks.all_text_contents()) if self.answers.count() else ""

    def wait_until_done(self, answers: int = 1) -> None:
        """Until this many answers have their receipt and nothing runs."""
        expect(self.receipts).to_have_count(answers, timeout=LIMIT_MS)
        expect(self.stop_button).to_be_hidden()

    def wait_for_text(self, text: str) -> None:
        expect(self.answers.last).to_contain_text(text, timeout=LIMIT_MS)

    def close(self) -> None:
        self.context.close()
