"""Names that folders, servers and settings give, wherever the page says them."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from llm.conversation_tree import title_of
from llm.literal_markdown import literal
from llm.seen_text import seen

HOSTILE = "**bold** [x](http:) $x^2$ \u202ertl"


def draw() -> None:
    import streamlit as st

    from llm.conversation_tree import Receipt, Turn
    from llm.errors import NotAModelError, Reason
    from llm.types import BackendStatus, Finish, SamplingParams
    from ui.backend_status import short_status
    from ui.language import say_error, say_reason
    from ui.receipt_line import receipt_line

    name = st.session_state.name
    st.markdown(short_status(BackendStatus("ready", name)))
    receipt = Receipt(name, Finish("stop"), server=name)
    st.markdown(receipt_line(Turn("t", "?", "local", SamplingParams(), receipt=receipt)))
    st.markdown(say_error(NotAModelError(model=name, reason=Reason("reason-no-config"))))
    stopped = Reason("model-stopped", {"model": name})
    st.markdown(say_reason(Reason("model-went-back", {"why": stopped, "back": name})))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_name_is_never_markup_and_turns_nothing_round(language: str) -> None:
    app = AppTest.from_function(draw)
    app.session_state["name"] = HOSTILE
    app.session_state["language"] = language
    app.run()
    assert not app.exception
    said = [element.value for element in app.markdown]
    assert [text.count(literal(HOSTILE)) for text in said] == [1, 2, 1, 2]
    assert not any("\u202e" in text for text in said)


def test_what_is_not_seen_is_left_out_of_names_and_titles_alike() -> None:
    assert seen("a\u202eb\u2066c\u2069\u200bd\ufeff\x07") == "abcd"
    assert title_of("a\u202eb\u2066c\u2069") == "abc"
    assert literal("a\u202eb") == "ab"
    for kept in ("👨\u200d👩\u200d👧", "नि\u200cम", "❤\ufe0f", "a\tb"):
        assert seen(kept) == kept
