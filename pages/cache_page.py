"""The answer cache: what it holds, what it did and why, and how to empty it."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from llm.cache_report import CacheReport, log_file, report
from llm.cache_types import SHARED, CacheEntry, CacheFullError, CacheStoreError, CacheTotals
from llm.literal_markdown import literal
from llm.markdown_text import words_of
from llm.types import Backend
from ui import resources
from ui.answer_view import AnswerView, finished_blocks
from ui.backend_status import StatusPlace, watch
from ui.callback import callback
from ui.language import say, words
from ui.near_misses import draw_near_misses, near_misses
from ui.owner import owner, providers, while_signed_in
from ui.receipt_line import age

SHOWN = 20
OPENING_CHARS = 160
SEARCH_PAUSE = "400ms"
"""After the last key; the page is drawn for what was typed until then."""

_SHOWN, _MODEL, _AGE, _CLEARED = "cache_shown", "cache_clear_model", "cache_clear_age", "cleared"
_NOT_DONE, _SEARCH, _CLEARING = "cache_not_done", "cache_search", "cache_clearing"
_AGES = {"hour": 3600.0, "day": 86_400.0, "week": 7 * 86_400.0}


def draw(backend: Backend, backend_status: StatusPlace) -> None:
    """Draw the page."""
    st.title(say("page-cache"))
    contents, mine = resources.cache().contents, owner()
    st.caption(_explained(shared=contents.shared))
    trouble_place = st.empty()
    if not_done := st.session_state.pop(_NOT_DONE, ""):
        trouble_place.warning(say(not_done), icon=":material/bolt:")
    state = st.session_state
    state.setdefault(_SHOWN, SHOWN)
    text = str(state.get(_SEARCH) or "").strip()
    try:
        told = report(contents.counts(mine))
        near = near_misses()
        totals = contents.totals(mine)
        entries = contents.entries(mine, state[_SHOWN] + 1, text)
    except CacheStoreError:
        st.warning(say("cache-in-trouble"), icon=":material/bolt:")
    else:
        # A place for each part: what a part has lost doesn't move, and so double, what is below it.
        with st.container():
            _draw_report(told)
        with st.container():
            draw_near_misses(near, _NOT_DONE)
        with st.container():
            st.subheader(say("cache-entries"))
            st.caption(say("cache-totals", entries=totals.entries, size=_size(totals.size)))
            if contents.shared:
                st.caption(say("cache-shared-free" if contents.shared_clear else "cache-shared"))
            st.text_input(
                say("cache-search"),
                key=_SEARCH,
                type="search",
                placeholder=say("cache-search"),
                label_visibility="collapsed",
                live=SEARCH_PAUSE,
                on_change=callback(_begin_list),
            )
            with st.container():
                _draw_entries(entries, text)
        with st.container():
            _draw_clear(entries, told, totals)
    status = backend.status()
    if not status.settled:
        watch(backend, backend_status, st.empty())


def _explained(*, shared: bool) -> str:
    """What the page is about, and whose the answers are in this installation."""
    parts = ["cache-explain", "cache-keeps-shared" if shared else "cache-keeps-own"]
    if not providers():
        parts.append("cache-one-account")
    return ("" if words().language == "zh" else " ").join(map(say, parts))


def _draw_report(told: CacheReport) -> None:
    st.subheader(say("cache-report"))
    if not told.questions:
        st.caption(say("cache-no-questions"))
        return
    with st.container(horizontal=True, key="cache_figures"):
        for name, count in (
            ("exact", told.exact),
            ("similar", told.similar),
            ("missed", told.missed),
            ("fresh", told.fresh),
            ("refused", told.refused),
        ):
            share = say("cache-share", share=told.share(count))
            st.metric(
                say(f"cache-count-{name}"), share, help=say(f"cache-{name}-count", count=count)
            )
    st.caption(
        say(
            "cache-saved",
            questions=told.questions,
            tokens=told.saved_tokens,
            seconds=round(told.saved_s),
        )
    )
    for sentence, counts in (
        ("cache-reasons", told.reasons),
        ("cache-miss-reasons", told.miss_reasons),
    ):
        reasons = [
            say("cache-reason-count", reason=say(_reason(name)), count=count)
            for name, count in counts.items()
        ]
        if reasons:
            st.caption(say(sentence, reasons=" · ".join(reasons)))


def _draw_entries(entries: Sequence[CacheEntry], text: str) -> None:
    shown = st.session_state[_SHOWN]
    if not entries:
        st.caption(say("cache-not-found" if text else "cache-empty"))
    for entry in entries[:shown]:
        with st.container(border=True, key=f"entry-{entry.key.digest}", gap="xsmall"):
            _draw_entry(entry)
    if len(entries) > shown:
        st.button(say("cache-more"), key="cache_more", on_click=callback(_more))


def _draw_entry(entry: CacheEntry) -> None:
    digest = entry.key.digest
    opening = words_of(entry.opening, cut=entry.chars > len(entry.opening))[:OPENING_CHARS]
    st.html(
        f'<div class="steady-cache-question">{html.escape(entry.question)}</div>'
        f'<div class="steady-cache-opening">{html.escape(opening)}</div>'
    )
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"known-{digest}"
    ):
        parts = [
            literal(entry.model),
            *([literal(entry.server)] if entry.server else []),
            age(time.time() - entry.created_s),
            say("cache-hits", count=entry.hits),
            _size(entry.size),
            *([say("cache-is-shared")] if entry.key.scope == SHARED else []),
        ]
        st.caption(" · ".join(parts), width="stretch")
        if resources.cache().contents.may_forget(entry):
            st.button(
                say("cache-forget"),
                key=f"forget-{digest}",
                type="tertiary",
                icon=":material/delete:",
                on_click=callback(_forget),
                args=(digest,),
            )
    opened = st.expander(
        say("cache-open"), key=f"opened-{digest}", type="compact", on_change="rerun"
    )
    if opened.open:
        with opened:
            _draw_answer(digest)


def _draw_answer(digest: str) -> None:
    """The whole answer, as the chat shows it. Read and drawn only where somebody opened it."""
    try:
        answer = resources.cache().contents.answer(owner(), digest)
    except CacheStoreError:
        st.caption(say("cache-in-trouble"))
        return
    if answer is None:
        st.caption(say("cache-gone"))
        return
    with st.container(key=f"answer-kept-{digest}"):
        AnswerView(st.container()).draw_finished(finished_blocks(answer.text))


def _draw_clear(entries: Sequence[CacheEntry], told: CacheReport, totals: CacheTotals) -> None:
    contents = resources.cache().contents
    st.subheader(say("cache-clear"))
    # What is chosen stays there, whatever the list above was searched for.
    chosen = st.session_state.get(_MODEL) or ""
    models = {entry.model for entry in entries} | set(told.models) | {chosen}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        model = st.selectbox(
            say("cache-clear-model"),
            ["", *sorted(models - {""})],
            key=_MODEL,
            format_func=_model_label,
        )
        age_name = st.selectbox(
            say("cache-clear-age"),
            ["", *_AGES],
            key=_AGE,
            format_func=lambda name: say(f"cache-age-{name or 'any'}"),
        )
    with st.container(horizontal=True):
        # Its state is kept, so that it is closed once the answers are gone.
        with st.popover(
            say("cache-clear-button"), icon=":material/delete:", key=_CLEARING, on_change="rerun"
        ):
            if model or age_name:
                st.markdown(say("cache-clear-question"))
            elif contents.shared and not contents.shared_clear:  # those that stay are counted, too
                st.markdown(say("cache-clear-all-question"))
            else:
                st.markdown(say("cache-clear-all-count", count=totals.entries))
            if contents.shared:
                st.caption(
                    say("cache-clears-shared" if contents.shared_clear else "cache-clears-own")
                )
            st.button(
                say("cache-clear-yes"),
                key="cache_clear_yes",
                type="primary",
                on_click=callback(_clear),
                args=(model, age_name),
            )
        # Made when it is asked for, outside of the script's runs.
        st.download_button(
            say("cache-export"),
            while_signed_in(partial(_log_file, owner())),
            file_name="steady-chat-cache.jsonl",
            mime="application/x-ndjson",
            key="cache_export",
            icon=":material/download:",
            help=say("cache-export-help"),
            on_click="ignore",
            disabled=not told.questions,
        )
    cleared = st.session_state.pop(_CLEARED, None)
    if cleared is not None:
        st.caption(say("cache-cleared", count=cleared))


def _log_file(mine: str) -> bytes:
    return log_file(resources.cache().contents.decisions(mine))


def _model_label(name: str) -> str:
    return name or say("cache-any-model")


def _size(size: int) -> str:
    return say("cache-size", size=size / 1024)


def _reason(name: str) -> str:
    return f"cache-reason-{name}"


def _begin_list() -> None:
    st.session_state[_SHOWN] = SHOWN


def _more() -> None:
    st.session_state[_SHOWN] += SHOWN


def _forget(digest: str) -> None:
    def forget() -> None:
        resources.cache().contents.forget(owner(), digest)
        st.toast(say("cache-cleared", count=1))

    _tried(forget)


def _clear(model: str, age_name: str) -> None:
    before_s = time.time() - _AGES[age_name] if age_name else None
    st.session_state[_CLEARING] = False

    def clear() -> None:
        st.session_state[_CLEARED] = resources.cache().contents.clear(
            owner(), model=model or None, before_s=before_s
        )

    _tried(clear)


def _tried(act: Callable[[], None]) -> None:
    try:
        act()
    except CacheStoreError as error:
        full = isinstance(error, CacheFullError)
        st.session_state[_NOT_DONE] = "cache-disk-full" if full else "cache-not-done"
