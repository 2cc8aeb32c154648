"""What the tabs of one browser tell each other about signing in and out.

Streamlit leads back from the provider to the start page, whatever address was asked for, and tells
the other tabs nothing of a sign-out. So the sign-in screen keeps the address in its tab, for the
page to go to, and calls the tabs that still show something, which load anew.
"""

from __future__ import annotations

import streamlit as st

SIGNING_OUT = "signing_out"
"""In the state of a session that is on its way out."""

_JS = """
const ADDRESS = "steady-wanted-address";

export default function ({ data }) {
  const channel = new BroadcastChannel("steady-sign-in");
  // On leaving: the choice of a language changes the address.
  const keep = () => sessionStorage.setItem(ADDRESS, location.pathname + location.search);
  const was_signed_in = window.__steadySignedIn;
  window.__steadySignedIn = data.signed_in;
  if (data.signed_in) {
    channel.onmessage = () => { if (window.__steadySignedIn) location.reload(); };
    const wanted = sessionStorage.getItem(ADDRESS);
    sessionStorage.removeItem(ADDRESS);
    // Who meanwhile went to a conversation by its address stays there.
    const here = location.pathname + location.search;
    if (wanted && wanted !== here && !new URLSearchParams(location.search).has("c"))
      location.replace(new URL(wanted, location.origin));
  } else {
    addEventListener("pagehide", keep);
    channel.postMessage("signed out");
    // Streamlit leaves an empty sidebar; but it mustn't be kept from going where a sign-out ends.
    if (was_signed_in && !data.leaving) location.reload();
  }
  return () => {
    removeEventListener("pagehide", keep);
    channel.close();
  };
}
"""


@st.cache_resource(show_spinner=False)
def _component() -> st.components.v2.types.ComponentRenderer:
    return st.components.v2.component("steady_chat_tabs", js=_JS)


def tell_tabs_signed_out() -> None:
    """Call the tabs that are still open, and keep the address for after the sign-in."""
    _mount(signed_in=False, leaving=SIGNING_OUT in st.session_state)


def listen_for_sign_out() -> None:
    """Load anew when another tab has signed out; go to the address that was asked for."""
    _mount(signed_in=True, leaving=False)


def _mount(**data: bool) -> None:
    with st.container(key="tabs"):
        _component()(key="tabs_component", data=data, height=0)
