"""The browser's word on how long drawing takes it, and the route that hears it.

A component without a face runs in the page: while an answer streams it adds up how long the main
thread kept animation frames waiting and posts the sum, at most twice a second, to a route of this
process. No rerun, no text, only a number under the session's own token.
"""

from __future__ import annotations

import json
import secrets
import time
import weakref

import streamlit as st
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from llm.pacing import BELIEVABLE_MS, PaintMeter

PATH = "/steady/paint"
MAX_BODY_BYTES = 1024
MIN_GAP_S = 0.2
"""Reports that come faster than this, under one token, are dropped."""

_JS = """
const FRAME_MS = 1000 / 60;
const REPORT_BUSY_MS = 500;
const REPORT_CALM_MS = 2000;
const BUSY = 0.15;

function start(probe) {
  const loop = (now) => {
    if (!probe.active) { probe.running = false; return; }
    const gap = now - probe.last;
    probe.last = now;
    if (gap > 1.5 * FRAME_MS && !document.hidden) probe.busy += gap - FRAME_MS;
    // A screen that keeps up needn't say so as often.
    const passed = now - probe.sent;
    const due = probe.busy > BUSY * passed ? REPORT_BUSY_MS : REPORT_CALM_MS;
    if (passed >= due && !document.hidden) {
      fetch(probe.url, {
        method: "POST",
        keepalive: true,
        body: JSON.stringify({ token: probe.token, busy_ms: Math.round(probe.busy) }),
      }).catch(() => {});
      probe.sent = now;
      probe.busy = 0;
    }
    requestAnimationFrame(loop);
  };
  probe.running = true;
  probe.last = probe.sent = performance.now();
  probe.busy = 0;
  requestAnimationFrame(loop);
}

export default function ({ data }) {
  const probe = (window.__steadyPaintProbe ??= { running: false });
  // A page that changes its language is laid out anew, all of it: when there is time.
  probe.language = data.language;
  requestIdleCallback(() => { document.documentElement.lang = probe.language; }, { timeout: 1000 });
  probe.active = data.active;
  probe.token = data.token;
  probe.url = new URL(data.path, document.baseURI).href;
  if (probe.active && !probe.running) start(probe);
  if (!probe.listening) {
    probe.listening = true;
    // A hidden tab gets no animation frames: its silence says nothing about the screen.
    document.addEventListener("visibilitychange", () => {
      probe.last = probe.sent = performance.now();
      probe.busy = 0;
    });
  }
}
"""


class Session:
    """One browser session's meter and when it last reported."""

    def __init__(self) -> None:
        self.meter = PaintMeter()
        self.heard_s = float("-inf")


@st.cache_resource(show_spinner=False)
def sessions() -> weakref.WeakValueDictionary[str, Session]:
    # Weak: a session's entry goes with its session state.
    return weakref.WeakValueDictionary()


@st.cache_resource(show_spinner=False)
def _component() -> st.components.v2.types.ComponentRenderer:
    return st.components.v2.component("steady_chat_paint_probe", js=_JS)


def paint_meter() -> PaintMeter:
    """This session's meter."""
    return _own_session()[1].meter


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
        report = json.loads(body)
        token, busy_ms = str(report["token"]), float(report["busy_ms"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return Response(status_code=400)
    session = sessions().get(token)
    if session is None:
        return Response(status_code=403)
    if not 0 <= busy_ms <= BELIEVABLE_MS:  # nor NaN
        return Response(status_code=400)
    now = time.monotonic()
    if now - session.heard_s < MIN_GAP_S:
        return Response(status_code=204)
    session.heard_s = now
    session.meter.report(busy_ms)
    return Response(status_code=204)


def paint_route() -> Route:
    return Route(PATH, take_report, methods=["POST"])
