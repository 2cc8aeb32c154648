"""What the page costs a person who has very many conversations.

The database of `store.py`, and the app on it in a real browser, with the scripted backend.

**A rerun's server time** is what the server's process has used of a processor, over ten changes of
a control in the sidebar, divided by ten: the whole page is drawn for each.

**Opening** is the time from the press on the longest conversation, found by searching for its
title, until its last answer is on the screen; and from the navigation, where it is opened by its
address. Each five times, in turns with a new chat.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import answers
from benchmarks.browser_probe import open_page
from benchmarks.chat_page import APP, SCRIPTS, Chat
from benchmarks.server import serve
from benchmarks.store import LONGEST_TURNS, fill
from benchmarks.table import Goal, Section, row, spread
from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import change_head
from llm.conversations import ConversationStore

TITLE = "The longest of them all"
LAST = "This is where it ends."
RERUNS = 10
TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class ManyFigures:
    """Milliseconds."""

    conversations: int
    turns: int
    rerun_ms: float
    open_ms: tuple[float, ...]
    address_ms: tuple[float, ...]


def measure_many(browser: Browser, conversations: int, turns: int, rounds: int) -> ManyFigures:
    """Fill a database, start the app on it, and measure."""
    with tempfile.TemporaryDirectory(prefix="steady-chat-many-") as folder:
        url = f"sqlite:///{Path(folder) / 'conversations.sqlite3'}"
        longest = fill(ConversationDatabase(url, "filling"), conversations, turns, last=LAST)
        store = ConversationStore(ConversationDatabase(url, "naming"))
        store.change(longest, change_head(title=TITLE))
        store.close()
        environment = {
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_SCRIPTS_FILE": str(answers.write_scripts(Path(folder), 600, 100)),
            "STEADY_CHAT_DATABASE_URL": url,
            "STEADY_CHAT_LANGUAGE": "en",
        }
        with serve(SCRIPTS[APP], environment) as server, open_page(browser, server.url) as probe:
            page = probe.page
            page.set_default_timeout(TIMEOUT_MS)
            page.get_by_test_id("stChatInputTextArea").wait_for()
            chat = Chat(server, probe)
            chat.settle()
            field = page.locator(".st-key-max_tokens input")
            before_s = server.cpu_s()
            for number in range(RERUNS):
                field.fill(str(100 + number))
                field.press("Enter")
                chat.settle()
            rerun_ms = 1000 * (server.cpu_s() - before_s) / RERUNS
            search = page.locator(".st-key-search input")
            search.fill(TITLE)
            search.press("Enter")
            found = page.locator('[class*="st-key-open-"] button', has_text=TITLE)
            opened, addressed = [], []
            for _ in range(rounds):
                page.locator(".st-key-new_chat button").click()
                page.get_by_text(LAST).wait_for(state="detached")
                chat.settle()
                began_s = time.perf_counter()
                found.click()
                page.get_by_text(LAST).wait_for()
                opened.append(1000 * (time.perf_counter() - began_s))
                chat.settle()
                began_s = time.perf_counter()
                page.reload(wait_until="commit")
                page.get_by_text(LAST).wait_for()
                addressed.append(1000 * (time.perf_counter() - began_s))
                chat.settle()
                search.fill(TITLE)
                search.press("Enter")
    return ManyFigures(conversations, turns, rerun_ms, tuple(opened), tuple(addressed))


def many_section(figures: ManyFigures) -> Section:
    """Its rows."""
    title = (
        f"the page with {figures.conversations:,} conversations, {2 * figures.turns:,} messages,"
        f" the longest of {2 * LONGEST_TURNS:,}"
    )
    rows = (
        row("a rerun's server time", {APP: figures.rerun_ms}, "{:.0f} ms".format, Goal(300, " ms")),
        spread("the longest opened", figures.open_ms, "{:.0f} ms", Goal(1000, " ms")),
        spread("and by its address, page and all", figures.address_ms, "{:.0f} ms"),
    )
    return Section(title, rows)
