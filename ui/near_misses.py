"""What the answer cache nearly gave, one card a pair of questions, and what a person says of it."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from llm.cache_types import CacheStoreError, Decision
from ui import resources
from ui.callback import callback
from ui.language import say
from ui.owner import owner

LOOKED_AT = 200
"""The same pair may be among them many times."""
SHOWN = 10

_CARDS, _JUDGED, _CLICKED = "near_cards", "near_judged", "near_clicked"
REASONS = (
    "words",
    "numbers",
    "names",
    "negation",
    "order",
    "quoted",
    "code",
    "lines",
    "long",
    "language",
)
"""Those of `same_question` that have a sentence of their own."""

Pair = tuple[Decision, ...]
"""The decisions about the same two questions, newest first."""


def near_misses() -> Sequence[Pair]:
    """The pairs to show, newest first.

    After a click on one of them they are those of before: the next card mustn't come under the
    mouse. What was judged goes with the next run.

    Raises:
        CacheStoreError: the store can't be asked.
    """
    state = st.session_state
    if not state.pop(_CLICKED, False) or _CARDS not in state:
        near = resources.cache().contents.near(owner(), LOOKED_AT)
        state[_CARDS], state[_JUDGED] = _pairs(near)[:SHOWN], {}
    shown: Sequence[Pair] = state[_CARDS]
    return shown


def draw_near_misses(pairs: Sequence[Pair], not_done: str) -> None:
    """Draw them; nothing where there are none.

    Args:
        not_done: what to set in the session's state where a click couldn't be noted.
    """
    if not pairs:
        return
    st.subheader(say("cache-near"))
    st.caption(say("cache-near-explain"))
    judged: dict[str, bool] = st.session_state[_JUDGED]
    for pair in pairs:
        newest = pair[0]
        with st.container(border=True, key=f"near-{newest.decision_id}"):
            st.html(_said("asked", newest.question) + _said("kept", newest.other))
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption(_told(newest, judged.get(newest.decision_id)), width="stretch")
                # They stay, for who clicked the wrong one.
                for same, name in ((True, "cache-same"), (False, "cache-different")):
                    st.button(
                        say(name),
                        key=f"{name}-{newest.decision_id}",
                        type="tertiary",
                        on_click=callback(_judge),
                        args=(pair, same, not_done),
                    )


def _pairs(near: Sequence[Decision]) -> list[Pair]:
    """By the two questions, whichever of them was asked."""
    pairs: dict[frozenset[str], list[Decision]] = {}
    for decision in near:
        pairs.setdefault(frozenset((decision.question, decision.other)), []).append(decision)
    return [tuple(decisions) for decisions in pairs.values()]


def _said(which: str, text: str) -> str:
    return (
        f'<div class="steady-near">{html.escape(say(f"cache-near-{which}"))}</div>'
        f'<div class="steady-question">{html.escape(text)}</div>'
    )


def _told(decision: Decision, judged: bool | None) -> str:
    if judged is not None:
        return say(f"cache-near-judged-{'same' if judged else 'different'}")
    reason = decision.reason if decision.reason in REASONS else "other"
    return say(
        "cache-near-why",
        reason=say(f"cache-near-reason-{reason}"),
        similarity=decision.similarity or 0.0,
    )


def _judge(pair: Pair, same: bool, not_done: str) -> None:
    state = st.session_state
    state[_CLICKED] = True
    try:
        for decision in pair:
            resources.cache().contents.judge(owner(), decision.decision_id, same=same)
    except CacheStoreError:
        state[not_done] = "cache-not-done"
    else:
        state[_JUDGED][pair[0].decision_id] = same
