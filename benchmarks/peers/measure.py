"""One page, one answer, seen from the browser."""

from __future__ import annotations

import json
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from benchmarks import answers
from benchmarks.browser_probe import Probe, open_page
from benchmarks.chat_page import CALM_S, PAGE_TIMEOUT_S, NotShownError
from benchmarks.interactions import EVERY_MS, Person, p75
from benchmarks.peers.peer import Peer
from benchmarks.peers.sent_bytes import SentBytes
from benchmarks.server import Server

GRACE_S = 30.0
AFTER_END_S = 1.0
FROZEN_S = 120.0


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """See the package's `__main__`. None: it couldn't be measured, or didn't come in time.

    Args:
        blocks: how many of the answer's numbered blocks are in the page.
        all_blocks: how many it has.
        chars: characters of the answer's text in the page, without white space.
        keys: how many were pressed while the answer came.
        typed: how many of them the input took.
    """

    peer: str
    tokens: int
    rate: float
    complete: bool
    blocks: int
    all_blocks: int
    chars: int
    followed: bool
    first_text_s: float | None
    behind_s: float | None
    frames: int
    long_frames: int
    longest_frame_ms: float
    keys: int
    typed: int
    key_p75_ms: float | None
    sent_mb: float | None
    server_cpu_s: float


def measure_peer(
    browser: Browser,
    name: str,
    peer: Peer,
    base_url: str,
    streams: list[tuple[int, float]],
    pictures: Path | None = None,
) -> list[PeerFigures]:
    """Start the peer, warm it up and ask for each of the answers in a fresh tab.

    Args:
        base_url: of the server that gives them.
        pictures: a folder for a picture of each answer's middle; taking it costs the page a frame.
    """
    figures = []
    with peer.serve(base_url) as server:
        for tokens, rate in streams:
            with open_page(browser, server.url) as probe:
                page = _Page(probe, peer, server)
                page.warm_up()
                picture = pictures / f"{name}-{tokens}.png" if pictures else None
                figures.append(_measure(page, name, base_url, tokens, rate, picture))
    return figures


class _Page:
    """A peer's page, as a person uses it."""

    def __init__(self, probe: Probe, peer: Peer, server: Server) -> None:
        self.probe, self.server = probe, server
        self.field = probe.page.locator(peer.field)
        self._answer = peer.answer
        self._told: dict[str, Any] | None = None
        try:
            self.field.wait_for(timeout=PAGE_TIMEOUT_S * 1000)
        except PlaywrightTimeoutError:
            raise NotShownError(f"no chat input; the server said:\n{server.said()}") from None
        self.settle()
        if peer.greeting and (greeting := probe.page.locator(peer.greeting)).is_visible():
            greeting.click()
            self.settle()
        probe.page.expose_function("benchmarkTells", self._hear)
        self.person = Person(probe, self.field)

    def ask(self, question: str) -> float:
        """Type the question, send it; returns when it was sent."""
        self.field.fill(question)
        self.field.press("Enter")
        sent_at = self.probe.read().input_at
        assert sent_at is not None
        return sent_at

    def warm_up(self) -> None:
        """A short answer first, so that the browser has loaded what code and formulas need."""
        self.probe.watch("mark", answers.WARM_UP_MARK)
        self.ask(answers.WARM_UP_QUESTION)
        if self.probe.wait_seen("mark", PAGE_TIMEOUT_S, every_ms=100) is None:
            raise NotShownError(f"no warm-up answer; the server said:\n{self.server.said()}")
        self.settle()
        # Where the input is from now on.
        self.person = Person(self.probe, self.field)

    def settle(self) -> None:
        self.probe.page.wait_for_timeout(CALM_S * 1000)

    def will_tell(self, give_up_s: float) -> None:
        """Have the page tell what there is after the end mark, or after so long without."""
        told = [self._answer, give_up_s * 1000, AFTER_END_S * 1000]
        self.probe.page.evaluate(_TELL_JS, told)

    def press_until_told(self, timeout_s: float) -> dict[str, Any]:
        """Click and type until the page has told.

        Raises:
            NotShownError: it hasn't in time: not one frame was painted.
        """
        deadline_s = time.monotonic() + timeout_s
        while self._told is None:
            if time.monotonic() > deadline_s:
                raise NotShownError(f"the page stood still for {FROZEN_S:.0f} s")
            self.person.press()
            self.probe.page.wait_for_timeout(EVERY_MS)
        return self._told

    def press_for(self, seconds: float) -> None:
        """Click and type for a while."""
        deadline_s = time.monotonic() + seconds
        while self._told is None and time.monotonic() < deadline_s:
            self.person.press()
            self.probe.page.wait_for_timeout(EVERY_MS)

    def _hear(self, told: str) -> None:
        self._told = json.loads(told)


# A page that is busy with its backlog lets a question of the browser's tools wait until that is
# worked off, which may take minutes. So nothing is asked: the page tells by itself, in a frame.
_TELL_JS = """([selector, giveUpMs, afterEndMs]) => {
  const began = Date.now();
  let typed = 0;
  window.addEventListener('beforeinput', () => { typed += 1; }, {capture: true});
  // Its text: without a formula's second copy for screen readers, and without what is no text.
  const shown = (answer) => {
    const copy = answer.cloneNode(true);
    copy.querySelectorAll('.katex-mathml, button, style, script, svg').forEach((e) => e.remove());
    return copy.textContent.replace(/\\s+/g, '');
  };
  // Whether its last words can be seen, and nothing covers them.
  const atTheEnd = (answer) => {
    const words = document.createTreeWalker(answer, NodeFilter.SHOW_TEXT, (node) =>
      node.data.trim() && !node.parentElement.closest('button, style, script') &&
      node.parentElement.checkVisibility() ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT);
    let last = null;
    while (words.nextNode()) last = words.currentNode;
    if (!last) return false;
    const range = document.createRange();
    range.selectNodeContents(last);
    const box = [...range.getClientRects()].at(-1);
    if (!box) return false;
    const seen = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return !!seen && answer.contains(seen);
  };
  const look = () => {
    const end = __probe.seen.end, now = Date.now();
    if (end ? now < end + afterEndMs : now < began + giveUpMs) {
      requestAnimationFrame(look);
      return;
    }
    // First, since what follows takes the page some time.
    const counted = __probe.read(), interactions = __interactionsSoFar();
    const answer = [...document.querySelectorAll(selector)].at(-1);
    benchmarkTells(JSON.stringify({
      counted, interactions, typed, shown: answer ? shown(answer) : '',
      followed: !!answer && atTheEnd(answer),
    }));
  };
  requestAnimationFrame(look);
}"""


def _measure(
    page: _Page, name: str, base_url: str, tokens: int, rate: float, picture: Path | None
) -> PeerFigures:
    text, due_s = answers.answer(tokens), (tokens - 1) / rate
    question, probe, server = answers.question(tokens), page.probe, page.server
    probe.watch("begin", answers.BEGIN_MARK)
    probe.watch("end", answers.end_mark(tokens))
    port = urlsplit(server.url).port
    assert port is not None
    with SentBytes(port) as sent:
        cpu_s = server.cpu_s()
        probe.reset()
        page.will_tell(due_s + GRACE_S)
        asked_at = page.ask(question)
        if picture:
            page.press_for(due_s / 2)
            # A page that is too busy for it has none.
            with suppress(PlaywrightTimeoutError):
                probe.page.screenshot(path=picture, timeout=GRACE_S * 1000)
        told = page.press_until_told(due_s + GRACE_S + FROZEN_S)
        sent_bytes = sent.so_far()
        cpu_s = server.cpu_s() - cpu_s
    counted = told["counted"]
    felt = page.person.felt_of(told["interactions"])
    seen = {name: at / 1000 for name, at in counted["seen"].items()}
    with urllib.request.urlopen(base_url.removesuffix("/v1") + "/first", timeout=30) as reply:
        first_at = json.load(reply)[question]
    return PeerFigures(
        peer=name,
        tokens=tokens,
        rate=rate,
        complete="end" in seen and not answers.missing_blocks(text, told["shown"]),
        blocks=len(set(answers.BLOCK_MARK.findall(told["shown"]))),
        all_blocks=len(answers.BLOCK_MARK.findall(text)),
        chars=len(told["shown"]),
        followed=told["followed"],
        first_text_s=seen["begin"] - asked_at if "begin" in seen else None,
        behind_s=seen["end"] - first_at - due_s if "end" in seen else None,
        frames=counted["frames"],
        long_frames=counted["longFrames"],
        longest_frame_ms=counted["longestFrame"],
        keys=len(felt.keys_ms),
        typed=told["typed"],
        key_p75_ms=p75(felt.keys_ms),
        sent_mb=sent_bytes / 1e6 if sent_bytes is not None else None,
        server_cpu_s=cpu_s,
    )
