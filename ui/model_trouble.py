"""What is told above the input of a local model that couldn't be loaded, until somebody has read it.

The sidebar tells it too, and is folded away on a phone.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.errors import Reason
from llm.plain_markdown import plain
from llm.types import BackendStatus
from ui.callback import callback
from ui.language import say, words

_READ = "model_trouble_read"


def draw_model_trouble(place: DeltaGenerator, status: BackendStatus) -> None:
    """Say it in this placeholder, with a way to have it gone from this page."""
    trouble = status.notice
    if trouble is None or not _is_failure(trouble) or trouble is st.session_state.get(_READ):
        return
    with place.container(key="model_trouble", gap="xsmall"):
        st.error(plain(trouble.sentence(words())), icon=":material/error:")
        st.button(
            say("copy-close"), key="model_trouble_close", on_click=callback(_read), args=(trouble,)
        )


def _is_failure(notice: Reason) -> bool:
    """Whether something failed; else somebody has changed their mind."""
    why = notice.values.get("why")
    return isinstance(why, Reason) and why.message_id != "model-stopped"


def _read(trouble: Reason) -> None:
    st.session_state[_READ] = trouble
