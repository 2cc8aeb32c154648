"""Nobody reaches another's conversation, by address or otherwise."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.sign_in import SignInApp

pytestmark = pytest.mark.browser

SECRET = "a-word-that-only-Ann-knows"


def test_another_persons_conversation_cannot_be_read_listed_or_searched(
    sign_in_app: SignInApp,
) -> None:
    ann = sign_in_app.open_as("ann")
    ann.ask(f"{SECRET} " + "and many words more " * 40)
    ann.page.wait_for_url(re.compile(r"\?c="))
    query = ann.page.url.partition("?")[2]
    bob = sign_in_app.open_as("bob", f"/?{query}")
    received: list[bytes] = []
    bob.page.on(
        "websocket",
        lambda socket: socket.on(
            "framereceived",
            lambda frame: received.append(frame if isinstance(frame, bytes) else frame.encode()),
        ),
    )
    bob.page.goto(f"{sign_in_app.address}/?{query}")
    expect(bob.page.get_by_text("isn’t here")).to_be_visible()
    bob.ask("what Bob asks")
    bob.wait_until_done()
    assert bob.questions.all_inner_texts() == ["what Bob asks"]
    search = bob.page.locator(".st-key-search input")
    search.fill(SECRET[:10])
    search.press("Enter")
    expect(bob.page.get_by_text("Nothing found")).to_be_visible()
    assert any(b"what Bob asks" in frame for frame in received), "the page was not listened to"
    assert not any(SECRET.encode() in frame for frame in received)
    # What Bob did changed nothing of hers.
    ann.wait_until_done()
    expect(ann.answers.last).to_contain_text("and many words more")
    assert ann.questions.count() == 1
    expect(ann.receipts).to_contain_text("finished")
    ann.close()
    bob.close()
