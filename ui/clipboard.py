"""Puts a text on the clipboard of whoever clicked, from a script run.

The browser lets a page write there for some seconds after a click, and only where it was opened
by https or on this machine. Where it refuses, the page is told.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import streamlit as st

from ui.callback import callback

_JS = """
export default function ({ data, parentElement, setTriggerValue }) {
  // Drawn anew by every run: once is enough. It comes without its text once that is known here.
  if (!data.text || window.__steadyCopied === data.mark) return;
  window.__steadyCopied = data.mark;
  const note = parentElement.querySelector('[role="status"]');
  const write = async () => navigator.clipboard.writeText(data.text);
  write().then(
    () => {
      note.textContent = data.done;
      setTimeout(() => { note.textContent = ''; }, 2500);
      setTriggerValue('copied', data.mark);
    },
    () => setTriggerValue('refused', data.mark),
  );
}
"""
_HTML = '<div role="status"></div>'
_CSS = """
div[role="status"]:not(:empty) {
  position: fixed; bottom: 11rem; left: 50%; transform: translateX(-50%); z-index: 1000;
  padding: 0.25rem 0.75rem; border-radius: 0.5rem; font: 0.875rem var(--st-font);
  color: var(--st-background-color); background: var(--st-text-color);
}
"""


@st.cache_resource(show_spinner=False)
def _component() -> st.components.v2.types.ComponentRenderer:
    return st.components.v2.component("steady_chat_clipboard", html=_HTML, css=_CSS, js=_JS)


def new_mark() -> str:
    """What tells one copy from another."""
    return secrets.token_hex(8)


def put_on_clipboard(
    text: str, mark: str, done: str, copied: Callable[[], None], refused: Callable[[], None]
) -> None:
    """Have the browser copy a text, once for each mark.

    Args:
        text: "" once it is copied, and needn't be sent again by every run.
        done: what is said then.
        copied: called before the next run once the browser has it.
        refused: called before the next run where the browser doesn't let the page.
    """
    data = {"text": text, "mark": mark, "done": done}
    _component()(
        key="clipboard_text",
        data=data,
        height=0,
        on_copied_change=callback(copied),
        on_refused_change=callback(refused),
    )
