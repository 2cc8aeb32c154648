"""Has a page drawn anew when it isn't true any more because of what happens elsewhere.

In another tab something is asked, renamed, deleted; an answer of another conversation ends; the
database can't be had; a server goes away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date

import streamlit as st

from llm.conversation_days import day_of
from llm.conversation_tree import Conversation, ConversationKey
from llm.errors import StoreError
from ui import resources
from ui.model_pick import models_changed
from ui.owner import needs_sign_in, owner
from ui.server_pick import servers_changed
from ui.time_zone import time_zone

LOOK_S = 2.0
"""How often a page looks."""

SHOWN = 20
"""Conversations that are listed at first, and that “Show more” adds."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page was drawn with.

    Args:
        listed: the list's conversations, and one more where there are more.
        answering: in which of them an answer is under way.
        turns: the present conversation's: their ids, states, and whether they are deleted.
        trouble: why nothing, or not the present conversation, can be saved; None while all is well.
        today: by the reader's calendar.
    """

    here: ConversationKey
    listed: tuple[Conversation, ...]
    answering: frozenset[ConversationKey]
    turns: tuple[tuple[str, str, float | None], ...]
    trouble: StoreError | None
    today: date

    def same(self, other: Seen) -> bool:
        """Whether a page drawn with the one would look like the other."""
        told = replace(self, trouble=None) == replace(other, trouble=None)
        return told and type(self.trouble) is type(other.trouble)

    def same_chat(self, other: Seen) -> bool:
        """Whether both show the same conversation, with the same turns in the same states."""
        return (self.here, self.turns) == (other.here, other.turns)


def see(here: ConversationKey) -> Seen:
    """What there is to see now. Costs two short queries."""
    chat = resources.chat()
    state = chat.state(here)
    limit = st.session_state.setdefault("list_shown", SHOWN)
    return Seen(
        here=here,
        listed=tuple(chat.store.listed(owner(), limit + 1)),
        answering=chat.answering(owner()),
        turns=tuple((t.turn_id, t.state, t.deleted_s) for t in state.turns.values())
        if state
        else (),
        trouble=chat.store.trouble_with(here),
        today=day_of(time.time(), time_zone()),
    )


@st.fragment(run_every=LOOK_S)
def look_at_rest() -> None:
    """Look now and then. It draws nothing itself, and waits while an answer is followed."""
    seen: Seen = st.session_state.seen
    changed = servers_changed() or models_changed()
    if needs_sign_in() or changed or not see(seen.here).same(seen):
        st.rerun()


def look_meanwhile(seen: Seen) -> Callable[[], bool]:
    """The same for a page that follows an answer: says whether it is to be drawn anew.

    What becomes of that answer itself doesn't count; who follows it sees to that.
    """
    looked_s = time.monotonic()

    def others(now: Seen) -> Seen:
        return replace(now, turns=(), answering=now.answering - {now.here})

    def changed() -> bool:
        nonlocal looked_s
        if time.monotonic() - looked_s < LOOK_S:
            return False
        looked_s = time.monotonic()
        return not others(see(seen.here)).same(others(seen))

    return changed
