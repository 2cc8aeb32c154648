"""Scrolls the sidebar to what is told of a model, once somebody has picked it from the list.

It may well stand below the window's edge, with the buttons that load it.
"""

from __future__ import annotations

import streamlit as st

_JS = """
const LAST = ".st-key-model_leave button";

export default function ({ data }) {
  if (window.__steadyLooks === data.looks) return;
  window.__steadyLooks = data.looks;
  let over = false;
  const show = () => {
    if (over) return;
    const button = document.querySelector(LAST);
    if (!button) return requestAnimationFrame(show);
    document.querySelector(".st-key-local_model").scrollIntoView({ block: "nearest" });
    button.scrollIntoView({ block: "nearest" });
  };
  requestAnimationFrame(() => requestAnimationFrame(show));
  return () => { over = true; };
}
"""


@st.cache_resource(show_spinner=False)
def _component() -> st.components.v2.types.ComponentRenderer:
    return st.components.v2.component("steady_chat_model_in_sight", js=_JS)


def bring_in_sight(looks: int) -> None:
    """Put it in the page.

    Args:
        looks: how often something new was to be seen; when it changes, it is scrolled to.
    """
    with st.container(key="model_in_sight"):
        _component()(key="model_in_sight_component", data={"looks": looks}, height=0)
