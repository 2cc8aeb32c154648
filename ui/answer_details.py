"""An answer's figures, one below the other, and its timings as a file; only where wanted."""

from __future__ import annotations

import html
from collections.abc import Iterator
from functools import partial

import streamlit as st

from llm.conversation_tree import Receipt, Turn
from ui import resources
from ui.callback import callback
from ui.language import say
from ui.owner import while_signed_in

_KEY = "details"


def show_details(turn_id: str) -> None:
    """Have this answer's figures below it from the next run on; once more hides them."""
    st.session_state[_KEY] = "" if are_shown(turn_id) else turn_id


def are_shown(turn_id: str) -> bool:
    """Whether this answer's figures stand below it."""
    return bool(st.session_state.get(_KEY) == turn_id)


def draw_details(turn: Turn) -> None:
    """The figures of an answer that is over, as far as they are known."""
    if turn.receipt is None:
        return
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>'
        for name, value in _figures(turn.receipt)
    )
    with st.container(key=f"details-{turn.turn_id}"):
        st.html(f'<table class="steady-table steady-details"><tbody>{rows}</tbody></table>')
        with st.container(horizontal=True):
            if resources.chat().flights.has(turn.turn_id):
                st.download_button(
                    say("details-flight"),
                    while_signed_in(partial(_flight, turn.turn_id)),
                    file_name=f"steady-chat-flight-{turn.turn_id[:8]}.json",
                    mime="application/json",
                    key=f"flight-{turn.turn_id}",
                    icon=":material/download:",
                    help=say("details-flight-help"),
                    on_click="ignore",
                    type="tertiary",
                )
            st.button(
                say("details-hide"),
                key=f"hide-details-{turn.turn_id}",
                on_click=callback(show_details),
                args=(turn.turn_id,),
                type="tertiary",
            )


def _flight(turn_id: str) -> bytes:
    # Meanwhile it may have made room for later ones.
    return resources.chat().flights.file(turn_id) or b"{}"


def _figures(receipt: Receipt) -> Iterator[tuple[str, str]]:
    """Names and values, in the order of an answer's life."""
    usage, screen = receipt.finish.usage, receipt.screen
    if receipt.waited_s is not None:
        yield say("details-waited"), say("details-seconds", seconds=receipt.waited_s)
    if usage.prompt_tokens is not None:
        yield say("details-prompt"), say("receipt-tokens", tokens=usage.prompt_tokens)
    if receipt.ttft_s is not None:
        yield say("details-ttft"), say("details-seconds", seconds=receipt.ttft_s)
    if receipt.reasoning_s is not None:
        yield say("details-reasoning"), say("details-seconds", seconds=receipt.reasoning_s)
    if receipt.decode_s is not None:
        yield say("details-decode"), say("details-seconds", seconds=receipt.decode_s)
    if receipt.tokens_per_s is not None:
        yield say("details-speed"), say("receipt-speed", speed=receipt.tokens_per_s)
    if receipt.itl_p50_ms is not None and receipt.itl_p95_ms is not None:
        told = say("details-itl-values", p50=receipt.itl_p50_ms, p95=receipt.itl_p95_ms)
        yield say("details-itl"), told
    if screen is None:
        yield say("details-screen"), say("details-unseen")
        return
    if screen.frames is not None:
        yield say("details-frames"), say("details-frames-values", frames=screen.frames)
    if screen.bytes_sent is not None:
        yield say("details-sent"), say("details-kb", size=screen.bytes_sent / 1000)
    for name in ("longest_freeze_ms", "inp_ms", "blocked_ms", "lag_ms"):
        value = getattr(screen, name)
        if value is not None:
            yield say(f"details-{name.replace('_', '-')}"), say("details-ms", value=value)
