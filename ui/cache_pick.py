"""How far the answer cache may go: the sidebar's part of it."""

from __future__ import annotations

import streamlit as st

from llm.cache_rules import is_random
from llm.plain_markdown import plain
from llm.settings import Settings
from llm.types import CacheUse, SamplingParams
from ui import resources
from ui.language import say, say_error
from ui.owner import owner

MODES = ("off", "exact", "similar")
PARAM, RANDOM_PARAM = "cache", "cache-random"
"""In the address, as the language is: for a refresh, a bookmark, a second tab."""

_SWITCHED = {False: "off", True: "on"}
_MODE, _RANDOM, _USED = "cache_mode", "cache_random", "cache_fresh_used"
_KEPT = "cache_kept"


def set_cache_defaults(settings: Settings) -> None:
    """Fill the controls before they are drawn: as the address says, else as the settings do."""
    state = st.session_state
    # Streamlit forgets the controls where a page is opened before the browser has told them.
    mode, random = state.get(_KEPT) or _in_address(settings)
    state.setdefault("first_cache", (mode, random))
    state.setdefault(_MODE, mode)
    state.setdefault(_RANDOM, random)
    state[_KEPT] = state[_MODE], state[_RANDOM]
    state.setdefault(_USED, 0)


def keep_cache_in_address(settings: Settings) -> None:
    """Write what differs from what a new visit would get into the address."""
    state = st.session_state
    chosen = {PARAM: state[_MODE], RANDOM_PARAM: _SWITCHED[bool(state[_RANDOM])]}
    usual = {PARAM: settings.cache, RANDOM_PARAM: _SWITCHED[settings.cache_random]}
    changed = {
        param: value
        for param, value in chosen.items()
        if value != st.query_params.get(param, usual[param])
    }
    if changed:  # at once: each writing is a step of the browser's Back
        st.query_params.update(changed)


def cache_use() -> CacheUse | None:
    """What the controls say, for the question that is asked now.

    Raises:
        NotSignedInError: see `owner`.
    """
    state = st.session_state
    mode, random = state[_KEPT]
    mode = state.get(_MODE) or mode
    if mode == "off":
        return None
    return CacheUse(
        owner(),
        similar=mode == "similar",
        random=bool(state.get(_RANDOM, random)),
        fresh=bool(state.get(_fresh())),
    )


def fresh_is_used() -> None:
    """“Fresh answer” goes for one question, which was asked now.

    Another switch from now on, which is off: one that is set back may be forgotten by a run that
    is ended before it draws it.
    """
    st.session_state[_USED] += bool(st.session_state.get(_fresh()))


def draw_cache_pick(params: SamplingParams | None) -> None:
    """The controls, in a popover: it opens in the browser, at once, whatever goes on.

    Args:
        params: what would be asked with now; None where that can't be.
    """
    mode = str(st.session_state[_MODE])
    sampled = params is not None and is_random(params) and not st.session_state[_RANDOM]
    cache = resources.cache()
    if mode == "off":
        standing, used = "cache-mode-off", ""
    elif cache.in_trouble:
        standing, used = "cache-label-unused", "cache-in-trouble"
    elif sampled:
        standing, used = "cache-label-unused", "cache-unused"
    else:
        fresh = bool(st.session_state.get(_fresh()))
        standing = "cache-label-fresh" if fresh else f"cache-mode-{mode}"
        used = "cache-used-fresh" if fresh else "cache-used"
    label = say("cache-label", mode=say(standing))
    with st.popover(label, icon=":material/bolt:", width="stretch"):
        # A place of its own, filled or not: what is below must not move to another element's.
        used_place = st.empty()
        if used:
            used_place.markdown(say(used))
        st.radio(
            say("cache-mode"),
            MODES,
            MODES.index(st.session_state.first_cache[0]),
            key=_MODE,
            format_func=lambda each: say(f"cache-mode-{each}"),
            captions=[say(f"cache-mode-{each}-help") for each in MODES],
        )
        st.toggle(
            say("cache-fresh"),
            key=_fresh(),
            disabled=mode == "off",
            help=say("cache-fresh-help"),
        )
        st.toggle(
            say("cache-random"),
            st.session_state.first_cache[1],
            key=_RANDOM,
            disabled=mode == "off",
            help=say("cache-random-help"),
        )
        if mode == "similar":
            state, trouble = cache.similar_state, cache.similar_trouble
            st.caption(say(f"cache-similar-{state}"))
            if state == "failed" and trouble is not None:
                st.caption(plain(say_error(trouble)))


def _in_address(settings: Settings) -> tuple[str, bool]:
    """The mode, and whether random answers will do."""
    mode, random = (st.query_params.get(param) for param in (PARAM, RANDOM_PARAM))
    return (
        mode if mode in MODES else settings.cache,
        random == "on" if random in _SWITCHED.values() else settings.cache_random,
    )


def _fresh() -> str:
    return f"cache_fresh_{st.session_state[_USED]}"
