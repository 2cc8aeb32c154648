"""The list of conversations: new, search, open, rename, pin, delete, undo."""

from __future__ import annotations

import html
import re
import time
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_access import SearchHit
from llm.conversation_days import Day, by_day
from llm.conversation_tree import MAX_TITLE_CHARS, Conversation, ConversationKey
from llm.literal_markdown import literal
from ui import resources
from ui.at_rest import SHOWN, Seen
from ui.callback import callback
from ui.conversation_id import conversation, new_conversation, open_conversation
from ui.language import say, words
from ui.list_keys import mount_list_keys
from ui.owner import owner
from ui.time_zone import time_zone

MOST_FOUND = 20
SEARCH_PAUSE = "300ms"
"""How long somebody who types must have paused to be shown what was found."""

FOUND_S = 10.0
"""How old what was found may be: another tab may have changed one that isn't listed."""

_SEARCH = "search"
_FOUND = "found"
_RENAMING = "renaming"
_TITLE = "new_title"
_DELETED = "deleted_last"


def draw_conversation_list(seen: Seen) -> None:
    """Draw the list. Of few elements: all of them are sent again with every click."""
    with st.container(gap="xsmall"):
        st.button(
            say("list-new"),
            key="new_chat",
            icon=":material/edit_square:",
            on_click=callback(_new),
            width="stretch",
        )
        query = st.text_input(
            say("list-search"),
            key=_SEARCH,
            type="search",
            placeholder=say("list-search"),
            label_visibility="collapsed",
            live=SEARCH_PAUSE,
        ).strip()
        _draw_undo(st.empty())
        with st.container(key="conversations", gap=None):
            drawn = _draw_found(seen, query) if query else _draw_days(seen)
            for _ in range(st.session_state.get("drawn_list", 0) - drawn):
                st.empty()  # in the place of what isn't listed any more
            st.session_state.drawn_list = drawn
    renaming: Conversation | None = st.session_state.get(_RENAMING)
    mount_list_keys(
        opened=st.session_state.get("opened", 0),
        renaming=renaming.key.conversation_id if renaming else "",
        title=renaming.title if renaming else "",
        on_leave=_leave_renaming,
    )


def _draw_days(seen: Seen) -> int:
    shown = seen.listed[: st.session_state.list_shown]
    drawn = 0
    for day in by_day(shown, time.time(), time_zone()):
        st.caption(_heading(day))
        drawn += 1
        for head in day.conversations:
            drawn += _draw_row(head, seen)
    if not drawn:
        st.caption(say("list-empty"))
        return 1
    if len(seen.listed) <= len(shown):
        return drawn
    st.button(
        say("list-more"),
        key="list_more",
        on_click=callback(_show_more),
        type="tertiary",
        width="stretch",
    )
    return drawn + 1


def _draw_found(seen: Seen, query: str) -> int:
    hits = _found(seen, query)
    if not hits:
        st.caption(say("list-nothing-found"))
        return 1
    return sum(_draw_row(hit.head, seen) + _draw_snippet(hit, query) for hit in hits)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found last."""

    query: str
    seen: Seen
    until_s: float
    hits: tuple[SearchHit, ...]


def _found(seen: Seen, query: str) -> tuple[SearchHit, ...]:
    """Not looked up by every run, which takes its time: while an answer runs, runs are many."""
    found = st.session_state.get(_FOUND)
    if (
        not isinstance(found, _Found)
        or (found.query, found.seen.here.owner) != (query, owner())
        or not found.seen.same(seen)
        or time.monotonic() >= found.until_s
    ):
        hits = resources.chat().store.search(owner(), query, MOST_FOUND)
        found = _Found(query, seen, time.monotonic() + FOUND_S, tuple(hits))
        st.session_state[_FOUND] = found
    return found.hits


def _draw_row(head: Conversation, seen: Seen) -> int:
    """A conversation's line; returns of how many elements it is."""
    name = head.key.conversation_id
    if _is_renamed(head.key):
        st.text_input(
            say("list-rename"),
            key=_TITLE,
            max_chars=MAX_TITLE_CHARS,
            label_visibility="collapsed",
            on_change=callback(_rename),
            args=(head.key,),
        )
        st.empty()
        return 2
    st.button(
        literal(head.title) or say("list-untitled"),
        key=f"open-{name}",
        on_click=callback(_open),
        args=(name,),
        icon=":material/pending:" if head.key in seen.answering else None,
        type="secondary" if head.key == seen.here else "tertiary",
        width="stretch",
        wrap=False,
    )
    st.menu_button(
        say("list-menu"),
        ("rename", "unpin" if head.pinned else "pin", "delete"),
        key=f"menu-{name}",
        format_func=lambda action: say(f"list-{action}"),
        on_click=callback(_act),
        args=(head,),
        icon=":material/more_horiz:",
        type="tertiary",
    )
    return 2


def _is_renamed(key: ConversationKey) -> bool:
    renaming: Conversation | None = st.session_state.get(_RENAMING)
    return renaming is not None and renaming.key == key


def _draw_snippet(hit: SearchHit, query: str) -> int:
    if not hit.snippet:
        return 0  # the title has it
    st.html(f'<div class="steady-snippet">{_marked(hit.snippet, query)}</div>')
    return 1


def _marked(text: str, query: str) -> str:
    """The text as HTML that shows just that, with what was looked for emphasised."""
    looked_for = "|".join(re.escape(word) for word in query.replace('"', " ").split())
    parts = re.split(f"({looked_for})", text, flags=re.IGNORECASE) if looked_for else [text]
    return "".join(
        f"<mark>{html.escape(part)}</mark>" if at % 2 else html.escape(part)
        for at, part in enumerate(parts)
    )


def _heading(day: Day) -> str:
    if day.date is None or day.kind in ("today", "yesterday"):
        return say(f"list-{day.kind}")
    return words().day(day.date, year=day.kind == "earlier")


def _draw_undo(place: DeltaGenerator) -> None:
    deleted = st.session_state.get(_DELETED)
    if deleted is not None:
        title = literal(deleted.title) or say("list-untitled")
        place.button(
            say("list-undo", title=title),
            key="undo_delete",
            icon=":material/undo:",
            on_click=callback(_undo),
            args=(deleted.key,),
            width="stretch",
            wrap=False,
        )


# -- what the clicks do: before the script runs, so that it draws what has become of them --


def _next_action() -> None:
    """Whatever is done next, what was deleted before stays deleted, and no title is half typed.

    What was found is looked up again: it may say something else then.
    """
    st.session_state.pop(_DELETED, None)
    st.session_state.pop(_FOUND, None)
    _leave_renaming()


def _new() -> None:
    _next_action()
    new_conversation()


def _open(conversation_id: str) -> None:
    _next_action()
    open_conversation(conversation_id)


def _act(head: Conversation) -> None:
    action = st.session_state[f"menu-{head.key.conversation_id}"]
    chat = resources.chat()
    _next_action()
    if action == "rename":
        st.session_state[_RENAMING] = head
        st.session_state[_TITLE] = head.title
    elif action == "delete":
        chat.delete(head.key)
        st.session_state[_DELETED] = head
        if head.key == conversation():
            new_conversation()
    elif action is not None:
        chat.pin(head.key, action == "pin")


def _rename(key: ConversationKey) -> None:
    # A field that was left with Escape may say what was typed in it all the same, as it goes.
    if _is_renamed(key):
        resources.chat().rename(key, st.session_state[_TITLE])
        _next_action()


def _leave_renaming() -> None:
    st.session_state.pop(_RENAMING, None)


def _undo(key: ConversationKey) -> None:
    _next_action()
    resources.chat().restore(key)


def _show_more() -> None:
    _next_action()
    st.session_state.list_shown += SHOWN
