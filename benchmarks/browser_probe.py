"""What the browser tells about itself while an answer arrives.

A few lines of JavaScript are put into the page before its own code. They count the bytes of the
web socket, long tasks and animation frames, and note when a text is first on the screen. What
they do at each message or frame is a handful of additions, so the probe doesn't weigh on what it
measures; `Network.webSocketFrameReceived` would report the same bytes, but hands each of them to
this process as well, which on a small machine is a load of its own.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

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
LONG_FRAME_MS = 50

PROBE_JS = """
(() => {
  const P = window.__probe = {
    bytes: 0, messages: 0, tasks: [], frames: 0, longFrames: 0, drawn: 0, longestFrame: 0,
    waits: [], watches: {}, seen: {}, inputAt: null, everyFrame: true, closed: 0,
    reset() {
      Object.assign(P, {bytes: 0, messages: 0, tasks: [], frames: 0, longFrames: 0, drawn: 0,
                        longestFrame: 0, waits: [], inputAt: null});
      longTasks.takeRecords();
    },
    lookAtEveryFrame(on) {
      P.everyFrame = on;
      if (on) { last = performance.now(); askForFrame(); }
    },
    // Note when `text` is first on the screen, in what is put there from now on.
    watch(name, text) { delete P.seen[name]; P.watches[name] = text; },
    // Note when a sidebar element with that text can be seen and isn't one of an earlier script
    // run that Streamlit keeps. Looks at every frame until then; for short spells only.
    watchSidebar(name, selector, text) {
      delete P.seen[name];
      const token = P.looking = {};
      const look = () => {
        if (P.looking !== token) return;
        const there = [...document.querySelectorAll(`[data-testid=stSidebar] ${selector}`)].some(
          (e) => e.textContent.includes(text) && e.checkVisibility()
            && !e.closest('[data-stale=true]'));
        if (there) found.push(name); else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    },
    read() {
      longTasks.takeRecords().forEach(noteTask);
      return {bytes: P.bytes, messages: P.messages, tasks: P.tasks, frames: P.frames,
              longFrames: P.longFrames, longestFrame: P.longestFrame, drawn: P.drawn,
              waits: P.waits, seen: P.seen, inputAt: P.inputAt};
    },
  };

  const noteTask = (entry) => P.tasks.push(entry.duration);
  const longTasks = new PerformanceObserver((list) => list.getEntries().forEach(noteTask));
  longTasks.observe({type: 'longtask', buffered: true});

  const Native = window.WebSocket;
  window.WebSocket = class extends Native {
    constructor(...args) {
      super(...args);
      this.addEventListener('close', () => { P.closed += 1; });
      this.addEventListener('message', (event) => {
        const d = event.data;
        P.messages += 1;
        P.bytes += d.byteLength ?? d.size ?? new TextEncoder().encode(d).length;
      });
    }
  };

  for (const kind of ['pointerdown', 'keydown'])
    window.addEventListener(kind, () => { P.inputAt = Date.now(); }, {capture: true});

  // A text is on the screen with the frame after the change that brought it.
  let changed = false, found = [];
  const look = (text) => {
    if (!text) return;
    for (const name in P.watches)
      if (text.includes(P.watches[name])) { found.push(name); delete P.watches[name]; }
  };
  new MutationObserver((records) => {
    changed = true;
    askForFrame();
    let watching = false;
    for (const _ in P.watches) { watching = true; break; }
    if (!watching) return;
    for (const r of records)
      if (r.type === 'characterData') look(r.target.data);
      else r.addedNodes.forEach((node) => look(node.textContent));
  }).observe(document, {subtree: true, childList: true, characterData: true});

  // Asking for frames makes the page produce sixty a second, which on a slow processor is most of
  // its work: so it can be left, and then only frames with something new are looked at.
  let last = performance.now(), asked = false;
  const frame = (now) => {
    asked = false;
    const gap = now - last;
    last = now;
    P.frames += 1;
    if (P.everyFrame) {
      if (gap > LONG_FRAME_MS) { P.longFrames += 1; P.waits.push([Date.now(), gap]); }
      if (gap > P.longestFrame) P.longestFrame = gap;
    }
    if (changed) { P.drawn += 1; changed = false; }
    // This callback runs before its frame is painted; the next task runs after.
    if (found.length) {
      const names = found;
      found = [];
      const channel = new MessageChannel();
      channel.port1.onmessage = () => names.forEach((name) => { P.seen[name] = Date.now(); });
      channel.port2.postMessage(null);
    }
    if (P.everyFrame) askForFrame();
  };
  const askForFrame = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(frame);
  };
  askForFrame();
})();
""".replace("LONG_FRAME_MS", str(LONG_FRAME_MS))


@dataclass(frozen=True, slots=True)
class Counters:
    """What the page counted since `Probe.reset`.

    Args:
        bytes: of the web socket's messages to the browser, uncompressed payload.
        messages: how many they were.
        tasks_ms: each main-thread task over 50 ms.
        frames: animation frames.
        long_frames: those that came over 50 ms after the one before.
        longest_frame_ms: the longest such wait.
        waits: when each such wait was over, in seconds of the wall clock, and its milliseconds.
        drawn: frames before which the page's content had changed.
        seen: when each watched text was on the screen, in seconds of the wall clock.
        input_at: the last key or pointer press, likewise.
    """

    bytes: int
    messages: int
    tasks_ms: tuple[float, ...]
    frames: int
    long_frames: int
    longest_frame_ms: float
    waits: tuple[tuple[float, float], ...]
    drawn: int
    seen: dict[str, float]
    input_at: float | None


class Probe:
    """One page under observation, in a browser context of its own."""

    def __init__(self, page: Page, cdp: CDPSession) -> None:
        self.page = page
        self._cdp = cdp
        self._cpu_cdp: CDPSession | None = None

    def throttle(self, factor: float) -> None:
        """Make the page's processor `factor` times slower."""
        self._cdp.send("Emulation.setCPUThrottlingRate", {"rate": factor})

    def slow_line(self, latency_s: float, bytes_a_second: float) -> None:
        """Slow the page's line down, web sockets included."""
        conditions = {
            "offline": False,
            "latency": latency_s * 1000,
            "downloadThroughput": bytes_a_second,
            "uploadThroughput": bytes_a_second,
        }
        self._cdp.send("Network.enable")
        self._cdp.send("Network.emulateNetworkConditions", conditions)

    def sockets_closed(self) -> int:
        """How many web sockets were closed since the page was opened."""
        return int(self.page.evaluate("__probe.closed"))

    def look_at_every_frame(self, on: bool) -> None:
        """Whether to measure the time between frames, which makes the page produce sixty a second.

        On a slowed down processor that is half of it: what is said of the main thread's load must
        be measured without.
        """
        self.page.evaluate("(on) => __probe.lookAtEveryFrame(on)", on)

    def reset(self) -> None:
        """Count from here."""
        self.page.evaluate("__probe.reset()")

    def watch(self, name: str, text: str) -> None:
        """Note when `text` is next put on the screen."""
        self.page.evaluate("([name, text]) => __probe.watch(name, text)", [name, text])

    def watch_sidebar(self, name: str, selector: str, text: str) -> None:
        """Note when the sidebar next has a live, visible element with `text`; one at a time."""
        self.page.evaluate("(told) => __probe.watchSidebar(...told)", [name, selector, text])

    def wait_seen(self, name: str, timeout_s: float, every_ms: float = 500) -> float | None:
        """When the watched text was on the screen, or None if it wasn't in time.

        Asked for now and then, from outside: a check inside each frame would cost the page.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            seen = self.page.evaluate("(name) => __probe.seen[name] ?? null", name)
            if seen is not None:
                return float(seen) / 1000
            if time.monotonic() >= deadline:
                return None
            self.page.wait_for_timeout(every_ms)

    def read(self) -> Counters:
        raw: dict[str, Any] = self.page.evaluate("__probe.read()")
        return Counters(
            bytes=raw["bytes"],
            messages=raw["messages"],
            tasks_ms=tuple(raw["tasks"]),
            frames=raw["frames"],
            long_frames=raw["longFrames"],
            longest_frame_ms=raw["longestFrame"],
            waits=tuple((at / 1000, gap_ms) for at, gap_ms in raw["waits"]),
            drawn=raw["drawn"],
            seen={name: at / 1000 for name, at in raw["seen"].items()},
            input_at=raw["inputAt"] / 1000 if raw["inputAt"] else None,
        )

    def main_thread_s(self) -> float:
        """Seconds the page's main thread has been busy since it was opened (CDP TaskDuration)."""
        return _task_s(self._cdp)

    def main_thread_cpu_s(self) -> float:
        """The same in processor time, since the first call: others' load isn't in it."""
        if self._cpu_cdp is None:
            self._cpu_cdp = self.page.context.new_cdp_session(self.page)
            self._cpu_cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
        return _task_s(self._cpu_cdp)


def _task_s(cdp: CDPSession) -> float:
    metrics = cdp.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser: the one that the variable CHROMIUM names, or the installed one.

    Raises:
        FileNotFoundError: there is none.
    """
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        raise FileNotFoundError("no Chromium here: run `make browser`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(browser: Browser, url: str, script: str = "") -> Iterator[Probe]:
    """A fresh, observed tab on `url`; `script` runs before the page's own."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-US")
    try:
        page = context.new_page()
        page.add_init_script(PROBE_JS + script)
        cdp = context.new_cdp_session(page)
        cdp.send("Performance.enable")
        page.goto(url)
        yield Probe(page, cdp)
    finally:
        context.close()
