"""What is shown to who has not signed in: that, and nothing else."""

from __future__ import annotations

import streamlit as st

from llm.catalogue import LANGUAGES
from llm.errors import SignInProviderError
from llm.plain_markdown import plain
from llm.settings import Settings
from llm.sign_in_setup import DEFAULT, check_provider
from ui.language import KEY as LANGUAGE_KEY
from ui.language import first_language, keep_in_address, say, say_error, words
from ui.owner import providers
from ui.paint_probe import mount_probe
from ui.tabs import tell_tabs_signed_out


def draw_sign_in(settings: Settings) -> None:
    """Draw the sign-in screen."""
    st.session_state.setdefault(LANGUAGE_KEY, first_language(settings.language))
    keep_in_address(settings.language)
    st.title(say("app-title"))
    st.write(say("sign-in-explain"))
    wanted = None
    for provider in providers():
        own = provider == DEFAULT
        if st.button(
            say("sign-in") if own else plain(say("sign-in-with", provider=provider)),
            key=f"sign_in_{provider}",
            type="primary",
            icon=":material/login:",
        ):
            wanted = provider
    trouble_place = st.empty()
    st.radio(
        "Language / 语言",
        list(LANGUAGES),
        key=LANGUAGE_KEY,
        format_func=LANGUAGES.__getitem__,
        horizontal=True,
    )
    tell_tabs_signed_out()
    with st.container(key="probe"):
        mount_probe(active=False, language=words().language)
    if wanted is not None:
        try:
            # Streamlit would say "Authentication error" on an empty page, in English.
            check_provider(providers()[wanted])
        except SignInProviderError as error:
            trouble_place.error(plain(say_error(error)))
        else:
            st.login(None if wanted == DEFAULT else wanted)
