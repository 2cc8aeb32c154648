"""Keeps a reader who is at the end of the conversation there, and leaves all others alone.

Streamlit follows the end by itself where a chat input stands outside `st.bottom`, but while text
streams in it takes the reader's own scrolling for growth and pulls them back down
(docs/decisions.md, "Following the end"). So the input stands inside, and this does the following.
"""

from __future__ import annotations

import streamlit as st

_JS = """
const NEAR_PX = 40;

export default function ({ data }) {
  const { pathname } = location;
  const scroller = document.querySelector('[data-testid="stMain"]');
  const content = document.querySelector('[data-testid="stMainBlockContainer"]');
  const reader = (window.__steadyReader ??= { following: true, asked: null });
  const fromEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  let left = false;
  // Streamlit leaves another page where this one was: at its end.
  const leavePage = () => { if (!left) { left = true; scroller.scrollTop = 0; } };
  const toEnd = () => {
    if (location.pathname !== pathname) leavePage();
    else if (reader.following) scroller.scrollTop = scroller.scrollHeight;
  };
  const leave = () => { if (scroller.scrollTop > 0) reader.following = false; };

  // Who asks wants to see the answer.
  if (reader.asked !== data.asked) reader.following = true;
  reader.asked = data.asked;
  toEnd();

  let top = scroller.scrollTop;
  let touchY = 0;
  // Where the end was when the reader set out for it: by their arrival it may have moved on.
  let end = Infinity;
  const setOut = () => { end = scroller.scrollHeight; };
  const listeners = {
    scroll: () => {
      const rose = scroller.scrollTop < top - 1;
      if (rose) end = Infinity;
      const arrived = scroller.scrollTop + scroller.clientHeight > end - NEAR_PX;
      if (arrived || fromEnd() < NEAR_PX) {
        reader.following = true;
        if (arrived) toEnd();
      } else if (rose) reader.following = false;
      top = scroller.scrollTop;
    },
    scrollend: () => { end = Infinity; },
    // These come before the scrolling that they cause: no frame in between may undo it.
    wheel: (event) => { if (event.deltaY < 0) leave(); else if (event.deltaY > 0) setOut(); },
    touchstart: (event) => { touchY = event.touches[0].clientY; },
    touchmove: (event) => {
      if (event.touches[0].clientY > touchY + 2) leave();
      else if (event.touches[0].clientY < touchY - 2) setOut();
    },
    keydown: (event) => {
      if (/^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
      if (["PageUp", "Home", "ArrowUp"].includes(event.key)) leave();
      else if (["PageDown", "End", "ArrowDown"].includes(event.key)) setOut();
    },
  };
  for (const [name, listener] of Object.entries(listeners))
    scroller.addEventListener(name, listener, { passive: true });
  const growth = new ResizeObserver(toEnd);
  // The input's own part grows as well, and shrinks: its height is part of what is scrolled.
  for (const part of [scroller, content, ...scroller.children]) growth.observe(part);
  return () => {
    growth.disconnect();
    for (const [name, listener] of Object.entries(listeners))
      scroller.removeEventListener(name, listener);
    if (location.pathname !== pathname) leavePage();
  };
}
"""


@st.cache_resource(show_spinner=False)
def _component() -> st.components.v2.types.ComponentRenderer:
    return st.components.v2.component("steady_chat_scroll_follower", js=_JS)


def follow_the_end(asked: int) -> None:
    """Put the follower in the page.

    Args:
        asked: how many questions were asked from this page; when it changes, whoever asked is
            taken to the end.
    """
    with st.container(key="follower"):
        _component()(key="scroll_follower", data={"asked": asked}, height=0)
