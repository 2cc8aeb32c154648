"""A sign-in provider, and the app with signing in, for the tests in this folder.

The provider is oidc-provider-mock: real OpenID Connect over HTTP, with a page of its own on which a
person says who they are.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser.chat_page import ChatPage

COOKIE_SECRET = "0123456789abcdef0123456789abcdef"
METADATA = "/.well-known/openid-configuration"
PEOPLE: dict[str, dict[str, Any]] = {
    "ann": {"name": "Ann *Example*", "email": "shared@example.com"},
    # The same address: who somebody is must not depend on it.
    "bob": {"name": "Bob", "email": "shared@example.com"},
}


@contextlib.contextmanager
def provider(
    log: Path, port: int, people: Mapping[str, Mapping[str, Any]] = PEOPLE
) -> Iterator[str]:
    """A provider that knows these people, by `sub`; gives its address, which is its issuer."""
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    for sub, claims in people.items():
        command += ["--user-claims", json.dumps({"sub": sub, **claims})]
    address = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_until_there(address + METADATA, process, log)
        yield address
    finally:
        process.terminate()
        process.wait(10)


def _wait_until_there(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"the sign-in provider did not start: {log.read_text()}")


def write_secrets(
    folder: Path,
    provider_address: str,
    *,
    app_address: str = "http://127.0.0.1:{port}",
    **more: str,
) -> Path:
    """A secrets.toml for that provider; `more` are further lines of `[auth]`, or others for them."""
    auth = {
        "redirect_uri": f"{app_address}/oauth2callback",
        "cookie_secret": COOKIE_SECRET,
        "client_id": "steady-chat",
        "client_secret": "secret",
        "server_metadata_url": provider_address + METADATA,
        **more,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in auth.items()]
    path = folder / "secrets.toml"
    path.write_text("\n".join(["[auth]", *lines, ""]), encoding="utf-8")
    return path


class SignInApp:
    """The app with signing in, and people's browsers.

    Args:
        address: where the app is.
        provider: where people sign in.
    """

    def __init__(self, chromium: Browser, address: str, provider: str) -> None:
        self.address = address
        self.provider = provider
        self._chromium = chromium
        self._contexts: list[BrowserContext] = []

    def browser(self, locale: str = "en-US", **given: Any) -> BrowserContext:
        """A browser of its own, in which nobody has signed in."""
        context = self._chromium.new_context(
            locale=locale, viewport={"width": 1200, "height": 850}, **given
        )
        context.set_default_timeout(30_000)
        self._contexts.append(context)
        return context

    def open_as(
        self,
        sub: str,
        path: str = "/",
        *,
        context: BrowserContext | None = None,
        locale: str = "en-US",
    ) -> ChatPage:
        """The chat as somebody sees it who has asked for `path` and signed in."""
        page = (context or self.browser(locale)).new_page()
        page.goto(self.address + path)
        sign_in(page, sub)
        return ChatPage.of(page)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


def sign_in(page: Page, sub: str) -> None:
    """From the sign-in screen over the provider's page back to the app, as that person."""
    page.locator('[class*="st-key-sign_in_"] button').click()
    page.get_by_role("button", name=sub, exact=True).click()


def sign_out(page: Page) -> None:
    """By the sidebar's button and the provider's own question, back to the sign-in screen."""
    page.locator(".st-key-sign_out button").click()
    page.get_by_role("button", name="End session").click()
    page.wait_for_selector('[class*="st-key-sign_in_"]')
