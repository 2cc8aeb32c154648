"""Which conversation this page shows. Its id is in the address: for a refresh, a bookmark, Back.

Streamlit makes a new entry in the browser's history of every change of the address that a script
makes, and reruns the script with the old address when the browser goes back to it. An address
differs from ours also where a click was sent before the browser knew its new one, so only what
Streamlit marks as the browser's own going is followed.
"""

from __future__ import annotations

import secrets

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from llm.conversation_tree import ConversationKey
from ui import resources
from ui.browser import browser
from ui.owner import LOCAL, owner

KEY = "conversation"
PARAM = "c"
NEW = "new"
"""In the address of a conversation that hasn't begun, so that Back and Forward find it too."""

_PAGE_STATE = ("first_shown", "most_turns", "note", "edited", "refused_question")
"""What the session's state holds of one conversation only."""


def conversation() -> ConversationKey:
    """The present conversation; a new one for a new visit, and where the address has none."""
    here = owner()
    present = st.session_state.get(KEY)
    if not isinstance(present, ConversationKey) or present.owner != here:
        present = _found(st.query_params.get(PARAM))
        st.session_state[KEY] = present
    return present


def arrive() -> ConversationKey:
    """The conversation that this run shows. Once a run, before anything of it is drawn.

    Follows the browser's Back and Forward, and leaves what was deleted in another tab.
    """
    present = conversation()
    state = st.session_state
    wanted = st.query_params.get(PARAM)
    if _browser_went() and wanted not in (None, present.conversation_id):
        if wanted != NEW or _begun(present):
            _turn_to(_found(wanted))
    elif state.get("begun") == present and not _begun(present):
        _turn_to(_found(present.conversation_id))
    present = conversation()
    state.begun = present if _begun(present) else None
    return present


def open_conversation(conversation_id: str) -> None:
    """Show another conversation from now on, with an address of its own."""
    if conversation_id != conversation().conversation_id or was_lost():
        _turn_to(_found(conversation_id))
        st.query_params[PARAM] = conversation_id
    _want_chat()


def new_conversation() -> None:
    """Show an empty conversation, whatever goes on in the one before.

    Where this one is empty, it stays, with what may be typed in it already.
    """
    present = conversation()
    if _begun(present) or present == st.session_state.get("begun"):
        _turn_to(_found(NEW))
        st.query_params[PARAM] = NEW
    st.session_state.lost = False
    _want_chat()


def meant(here: ConversationKey) -> ConversationKey:
    """The conversation that a question is for which was sent from this one.

    Where “New chat” was pressed just before, both may come at once, and it is for the new one.
    """
    present = conversation()
    return here if _begun(present) else present


def was_lost() -> bool:
    """Whether a conversation was wanted that isn't here any more."""
    return bool(st.session_state.get("lost"))


def chat_is_wanted() -> bool:
    """Whether a conversation was opened by the click that this run comes from."""
    return bool(st.session_state.pop("chat_wanted", False))


def person() -> str:
    """Who asks, for the fairness of the queue: who is signed in, else this browser.

    Not this tab: whoever opens ten would be ten people. Where the browser can't be told, it is the
    tab after all, and not everybody who can't be told from one another.

    Raises:
        NotSignedInError: a sign-in is needed, and there is none any more.
    """
    if (here := owner()) != LOCAL:
        return here
    if (named := browser()) is not None:
        return named
    return str(st.session_state.setdefault("person", secrets.token_hex(8)))


def show_in_address() -> None:
    """Write the id into the address, once there is something to come back to."""
    here = conversation()
    if not _begun(here):
        return
    st.session_state.lost = False
    if st.query_params.get(PARAM) != here.conversation_id:
        st.query_params[PARAM] = here.conversation_id


def _want_chat() -> None:
    state = st.session_state
    state.chat_wanted = True
    state.opened = state.get("opened", 0) + 1


def _found(wanted: str | None) -> ConversationKey:
    """The conversation of this id, or a new one; the page says so where that wasn't meant."""
    found = resources.chat().open(owner(), wanted)
    st.session_state.lost = bool(wanted) and wanted not in (NEW, found.conversation_id)
    return found


def _turn_to(key: ConversationKey) -> None:
    state = st.session_state
    state[KEY] = key
    for name in _PAGE_STATE:
        state.pop(name, None)
    if not state.get("question"):  # else it was sent with this very click, and is asked yet
        state.question = ""  # typed there and not asked
    # Who opens a conversation is taken to its end, as who asks is.
    state.asked = state.get("asked", 0) + 1


def _begun(key: ConversationKey) -> bool:
    """Whether there is such a conversation; what can't be read counts as there."""
    chat = resources.chat()
    return chat.state(key) is not None or (
        st.session_state.get("begun") == key and chat.store.trouble is not None
    )


def _browser_went() -> bool:
    """Whether this run comes from the browser's Back or Forward."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
