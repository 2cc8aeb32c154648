"""An answer that is being written on a branch that isn't shown.

The run doesn't follow it, so it ends, and the page is at rest; a fragment that draws nothing looks
whether the answer is over.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_tree import ConversationKey
from ui import resources
from ui.callback import callback
from ui.language import say

LOOK_S = 0.5


def draw_way_there(place: DeltaGenerator, here: ConversationKey, running_turn: str) -> None:
    """Say it, with a button that shows the branch."""
    place.caption(say("branch-elsewhere"), width="content")
    place.button(
        say("branch-show"),
        key="show_running",
        type="tertiary",
        on_click=callback(resources.chat().show),
        args=(here, running_turn),
    )


@st.fragment(run_every=LOOK_S)
def look_there(here: ConversationKey, running_turn: str) -> None:
    """Have the page drawn anew once that answer is over, or another runs."""
    job = resources.chat().job(here)
    if job is None or job.request.request_id != running_turn:
        st.rerun()
