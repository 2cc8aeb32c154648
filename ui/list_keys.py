"""What the list of conversations needs of the browser and Streamlit doesn't offer.

A title's field is ready to be typed in, and Escape leaves it, as Enter does where nothing changed;
on a phone, where the sidebar covers the page, it closes once a conversation was opened in it.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from ui.callback import callback

_JS = """
const NARROW_PX = 768;  // below this Streamlit lays the sidebar over the page

export default function ({ data, setTriggerValue }) {
  const before = (window.__steadyList ??= { opened: data.opened, renaming: "" });
  if (before.opened !== data.opened && window.innerWidth < NARROW_PX)
    document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
  const begins = data.renaming && before.renaming !== data.renaming;
  before.opened = data.opened;
  before.renaming = data.renaming;
  if (!data.renaming) return;

  const field = () => document.querySelector(".st-key-new_title input");
  let over = false;
  const ready = () => {
    const input = field();
    if (over) return;
    if (!input) return requestAnimationFrame(ready);
    input.focus();
    input.select();
  };
  const leave = (event) => {
    const input = field();
    if (event.target !== input || event.isComposing) return;
    const unchanged = event.key === "Enter" && input.value === data.title;
    if (event.key !== "Escape" && !unchanged) return;
    event.stopImmediatePropagation();
    // So that nothing is taken when the field goes.
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    set.call(input, data.title);
    input.dispatchEvent(new Event("input", { bubbles: true }));
    setTriggerValue("leave", true);
  };
  // Before the field's own: it would take what was typed when it loses the focus.
  document.addEventListener("keydown", leave, true);
  if (begins) ready();
  return () => {
    over = true;
    document.removeEventListener("keydown", leave, true);
  };
}
"""


@st.cache_resource(show_spinner=False)
def _component() -> st.components.v2.types.ComponentRenderer:
    return st.components.v2.component("steady_chat_list_keys", js=_JS)


def mount_list_keys(
    *, opened: int, renaming: str, title: str, on_leave: Callable[[], None]
) -> None:
    """Put it in the page.

    Args:
        opened: how many conversations were opened from this page.
        renaming: which conversation's title is being typed; "" where none is.
        title: what it is until then.
        on_leave: called when it is left without a new title.
    """
    with st.container(key="list_keys"):
        _component()(
            key="list_keys_component",
            data={"opened": opened, "renaming": renaming, "title": title},
            height=0,
            on_leave_change=callback(on_leave),
        )
