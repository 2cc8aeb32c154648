"""The browser's word on what it paints and how long that takes it, and the route that hears it.

A component without a face runs in the page: while an answer streams it looks which stamped frame
is painted, how long the main thread and input were kept waiting, and posts that, at most four
times a second, to a route of this process. No rerun, no text, only numbers under the session's own
token (`ScreenReport`).
"""

from __future__ import annotations

import json
import secrets
import time
import weakref
from collections import deque

import streamlit as st
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from streamlit.delta_generator import DeltaGenerator

from llm.screen import Screen, ScreenReport

PATH = "/steady/paint"
MAX_BODY_BYTES = 1024
MOST_A_SECOND = 4
"""Of more reports within a second, under one token, the later ones are dropped."""

now_s = time.monotonic

_JS = """
const FRAME_MS = 1000 / 60;
const BEAT_MS = 50;
const LATE_MS = 10;
const REPORT_MS = 260;
const LOST_MS = 1000;
const REPORT_BUSY_MS = 500;
const REPORT_CALM_MS = 2000;
const BUSY = 0.15;

function forget(probe) {
  probe.busy = probe.freeze = probe.blocked = probe.inp = 0;
}

function report(probe, now, stamp) {
  const { token, busy, freeze, blocked, inp } = probe;
  const body = JSON.stringify({
    token,
    stamp,
    busy_ms: Math.round(busy),
    freeze_ms: Math.round(freeze),
    blocked_ms: Math.round(blocked),
    inp_ms: Math.round(inp),
    hidden: document.hidden,
  });
  const before = probe.told;
  probe.lost = false;
  // Also while the page is being hidden or left.
  fetch(probe.url, { method: "POST", keepalive: true, body }).catch(() => {
    // The server waits for this word: it is said again, not at once.
    probe.lost = true;
    probe.told = Math.min(probe.told, before);
    probe.sent = Math.max(probe.sent, performance.now() + LOST_MS - REPORT_MS);
  });
  probe.sent = now;
  probe.told = stamp;
  forget(probe);
}

function start(probe) {
  // A timer, not animation frames: whoever asks for those makes the page produce sixty a second,
  // also while nothing changes, and a slow screen would be busy with that alone.
  const beat = () => {
    const now = performance.now();
    // Looked for in its own small place: all of the page is long.
    if (!probe.place?.isConnected) probe.place = document.querySelector(".st-key-probe");
    const stamp = Number(probe.place?.querySelector(".steady-stamp")?.textContent) || 0;
    if (stamp > probe.stamp) probe.stamp = stamp;
    if (!probe.active && (probe.stamp === probe.told || probe.lost)) {
      probe.running = false;
      return;
    }
    const gap = now - probe.last;
    probe.last = now;
    if (!document.hidden) {
      // What made the beat late had begun half a beat before it was due, taken all together.
      const held = gap > BEAT_MS + LATE_MS ? gap - BEAT_MS / 2 : 0;
      probe.busy += held;
      probe.freeze = Math.max(probe.freeze, held, FRAME_MS);
      // What has been painted is told at once; a screen that keeps up needn't say more as often.
      const passed = now - probe.sent;
      const calm = probe.busy > BUSY * passed ? REPORT_BUSY_MS : REPORT_CALM_MS;
      if (passed >= (probe.stamp > probe.told ? REPORT_MS : calm) && !probe.due) {
        // Behind the paint of the next frame, which ends with the callbacks of animation frames.
        probe.due = true;
        requestAnimationFrame((at) => probe.channel.port2.postMessage([at, probe.stamp]));
      }
    }
    setTimeout(beat, BEAT_MS);
  };
  probe.running = true;
  probe.last = performance.now();
  forget(probe);
  // So that the server knows from the start that it will be told.
  report(probe, probe.last, probe.stamp);
  setTimeout(beat, BEAT_MS);
}

function observe(probe, type, options, take) {
  try {
    new PerformanceObserver((list) => {
      if (probe.running) list.getEntries().forEach(take);
    }).observe({ type, ...options });
  } catch {
    // A browser that doesn't know the type says nothing of it.
  }
}

function listen(probe) {
  probe.stamp = probe.told = 0;
  probe.channel = new MessageChannel();
  probe.channel.port1.onmessage = ({ data }) => {
    probe.due = false;
    report(probe, ...data);
  };
  observe(probe, "long-animation-frame", {}, (entry) => {
    probe.blocked += entry.blockingDuration;
    probe.freeze = Math.max(probe.freeze, entry.duration);
  });
  observe(probe, "event", { durationThreshold: 16 }, (entry) => {
    if (entry.interactionId) probe.inp = Math.max(probe.inp, entry.duration);
  });
  document.addEventListener("visibilitychange", () => {
    // A hidden tab gets no animation frames: its silence says nothing about the screen.
    probe.last = performance.now();
    report(probe, probe.last, probe.stamp);
  });
}

export default function ({ data }) {
  const probe = (window.__steadyPaintProbe ??= { running: false });
  // A page that changes its language is laid out anew, all of it: when there is time.
  probe.language = data.language;
  requestIdleCallback(() => { document.documentElement.lang = probe.language; }, { timeout: 1000 });
  if (probe.token !== data.token) probe.stamp = probe.told = 0;
  probe.active = data.active;
  probe.token = data.token;
  probe.url = new URL(data.path, document.baseURI).href;
  if (!probe.channel) listen(probe);
  if (probe.active && !probe.running) start(probe);
}
"""


class Session:
    """One browser session's screen, and when it has reported lately."""

    def __init__(self) -> None:
        self.screen = Screen()
        self.heard_s = deque[float](maxlen=MOST_A_SECOND)


@st.cache_resource(show_spinner=False)
def sessions() -> weakref.WeakValueDictionary[str, Session]:
    # Weak: a session's entry goes with its session state.
    return weakref.WeakValueDictionary()


@st.cache_resource(show_spinner=False)
def _component() -> st.components.v2.types.ComponentRenderer:
    return st.components.v2.component("steady_chat_paint_probe", js=_JS)


def screen() -> Screen:
    """This session's screen."""
    return _own_session()[1].screen


def stamps() -> DeltaGenerator:
    """A place for the stamps of frames, with the newest in it: its frame may be under way yet."""
    place, newest = st.empty(), screen().credit.newest
    show_stamp(place, newest or None)
    return place


def show_stamp(place: DeltaGenerator, stamp: int | None) -> None:
    """Put a frame's stamp into the page, unseen; a frame without one leaves what is there.

    Sent together, the browser draws it together with the frame itself.
    """
    if stamp is not None:
        place.html(f'<span class="steady-stamp" hidden>{stamp}</span>')


def mount_probe(*, active: bool, language: str) -> None:
    """Put the probe in the page; `active` while an answer streams.

    It also tells the browser which language the page is in: Streamlit always says English, and a
    screen reader would read Chinese with an English voice.
    """
    token, _ = _own_session()
    base = st.get_option("server.baseUrlPath").strip("/")
    path = f"/{base}{PATH}" if base else PATH
    data = {"active": active, "token": token, "path": path, "language": language}
    _component()(key="paint_probe", data=data, height=0)


def _own_session() -> tuple[str, Session]:
    if "paint_session" not in st.session_state:
        token, session = secrets.token_urlsafe(16), Session()
        sessions()[token] = session
        st.session_state.paint_session = (token, session)
    token, session = st.session_state.paint_session
    return token, session


async def take_report(request: Request) -> Response:
    """Hear a report; whatever is wrong with it, nothing happens but the status code."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return Response(status_code=413)
    except ClientDisconnect:
        return Response(status_code=400)
    try:
        told = json.loads(body)
        report, token = ScreenReport.read(told), str(told["token"])
    except (ValueError, KeyError, RecursionError):
        return Response(status_code=400)
    session = sessions().get(token)
    if session is None:
        return Response(status_code=403)
    now = now_s()
    heard_s = session.heard_s
    if len(heard_s) < MOST_A_SECOND or now - heard_s[0] >= 1.0:
        heard_s.append(now)
        session.screen.hear(report)
    return Response(status_code=204)


def paint_route() -> Route:
    return Route(PATH, take_report, methods=["POST"])
