"""Asking in the browser, and reading the receipts below the answers."""

from __future__ import annotations

import re

from playwright.sync_api import Browser

from benchmarks.beside_bare import Run
from benchmarks.browser_probe import open_page
from benchmarks.chat_page import APP, PAGE_TIMEOUT_S, SCRIPTS
from benchmarks.server import serve

START_TIMEOUT_S = 900.0
TIMES = 3
_RECEIPT = re.compile(r"([\d,]+) tokens? · first text after ([\d.]+) s · ([\d.,]+) tokens/s")


def through_the_page(
    browser: Browser, environment: dict[str, str], question: str
) -> tuple[Run, ...]:
    """Ask three times, each in a conversation of its own; after one more that isn't counted.

    Args:
        environment: the settings of the app that is started for it.
    """
    runs = []
    with serve(SCRIPTS[APP], environment | {"STEADY_CHAT_LANGUAGE": "en"}) as server:
        for _ in range(1 + TIMES):
            with open_page(browser, server.url) as probe:
                field = probe.page.get_by_test_id("stChatInputTextArea")
                field.wait_for(timeout=PAGE_TIMEOUT_S * 1000)
                field.fill(question)
                field.press("Enter")
                receipt = probe.page.get_by_text(_RECEIPT)
                receipt.wait_for(timeout=START_TIMEOUT_S * 1000)
                ((made, ttft_s, speed),) = _RECEIPT.findall(receipt.inner_text())
                runs.append(Run(int(_number(made)), _number(speed), _number(ttft_s)))
    return tuple(runs[1:])


def _number(shown: str) -> float:
    return float(shown.replace(",", ""))
