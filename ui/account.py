"""Who is signed in, and the way out."""

from __future__ import annotations

import streamlit as st

from ui.callback import callback
from ui.language import say
from ui.owner import is_signed_in, name, sign_out
from ui.tabs import SIGNING_OUT, listen_for_sign_out


def draw_account() -> None:
    """Draw the name and “Sign out”; nothing where no sign-in is set up."""
    if not is_signed_in():
        return
    # As it is: a name is no Markdown.
    st.text(say("signed-in-as", name=name()))
    st.button(
        say("sign-out"),
        key="sign_out",
        icon=":material/logout:",
        on_click=callback(_leave),
        width="stretch",
    )
    listen_for_sign_out()


def _leave() -> None:
    st.session_state[SIGNING_OUT] = True
    sign_out()
