"""The doctor: one press, and each part of this installation says in a sentence how it is.

All see the process's last round, whoever pressed, until there is another.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import datetime

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_tree import ConversationKey
from llm.doctor import DoctorRun
from llm.doctor_mask import Mask
from llm.doctor_report import SIGNS, Report, Told, report_of, to_markdown
from llm.errors import SettingsError
from llm.settings import Settings
from llm.types import Backend
from ui import resources
from ui.backend_status import StatusPlace, watch
from ui.callback import callback
from ui.doctor_checks import make_checks, own_findings
from ui.language import say, words
from ui.live_answer import TICK_S, yield_to_rerun
from ui.note import Refused, copy, draw_note, put_note
from ui.owner import owner
from ui.time_zone import time_zone


def draw(settings: Settings, backend: Backend, backend_status: StatusPlace) -> None:
    """Draw the page."""
    st.title(say("page-doctor"))
    st.caption(say("doctor-explain"))
    run = resources.doctor().last
    with st.container(horizontal=True, key="doctor_buttons"):
        st.button(
            say("doctor-start" if run is None else "doctor-again"),
            key="doctor_start",
            type="primary",
            icon=":material/stethoscope:",
            disabled=run is not None and not run.over,
            on_click=callback(_start),
        )
        st.button(
            say("doctor-copy"),
            key="doctor_copy",
            icon=":material/content_copy:",
            disabled=run is None or not run.over,
            on_click=callback(_copy),
            args=(settings, run),
        )
    draw_note(st.empty(), _here(), undo_stands=True)
    place = st.empty()
    if run is not None:
        _follow(run, place, Mask.of(settings), backend_status)
    status = backend.status()
    if not status.settled:
        watch(backend, backend_status, st.empty())


def _start() -> None:
    put_note(_here(), None)
    try:
        resources.doctor().run(make_checks)
    except SettingsError as error:
        put_note(_here(), Refused(error))


def _copy(settings: Settings, run: DoctorRun) -> None:
    """Of the round that is shown; another may have begun meanwhile."""
    title = f"{say('app-title')} · {say('page-doctor')}"
    report = report_of(run, words(), Mask.of(settings), own_findings())
    copy(_here(), to_markdown(report, title, _began(run)))


def _here() -> ConversationKey:
    """The place that notes of this page belong to."""
    return ConversationKey(owner(), "doctor")


def _began(run: DoctorRun) -> datetime:
    return datetime.fromtimestamp(run.began_at_s, time_zone())


def _follow(run: DoctorRun, place: DeltaGenerator, mask: Mask, backend_status: StatusPlace) -> None:
    """Show what was found, and while checks run each finding as it comes. Then the page reruns."""
    came_late, shown, own = not run.over, None, own_findings()
    while True:
        left = run.left
        if left != shown:
            place.html(_page_of(report_of(run, words(), mask, own), _began(run)))
            shown = left
        if not left:
            break
        backend_status.update()
        yield_to_rerun()
        run.wait(left, TICK_S)
    if came_late:
        st.rerun()  # the buttons can be pressed now


def _page_of(report: Report, began: datetime) -> str:
    """The report as one element: it grows in place, and its order may change."""
    today = began.date() == datetime.now(began.tzinfo).date()
    at = say("doctor-at", time=f"{began:%H:%M:%S}" if today else f"{began:%Y-%m-%d %H:%M:%S}")
    parts = [
        f'<p class="steady-doctor-overall is-{report.level}" role="status">'
        f"{html.escape(report.overall)}<small>{html.escape(at)}</small></p>"
    ]
    if report.problems:
        parts.append(_rows(report.problems, with_group=True))
    for group, rest in report.groups:
        parts.append(f"<h3>{html.escape(group)}</h3>{_rows(rest, with_group=False)}")
    return f'<div class="steady-doctor">{"".join(parts)}</div>'


def _rows(rows: Sequence[Told], *, with_group: bool) -> str:
    return f"<ul>{''.join(_row(each, with_group=with_group) for each in rows)}</ul>"


def _row(told: Told, *, with_group: bool) -> str:
    level = say(f"doctor-level-{told.level or 'running'}")
    name = f"{told.group} · {told.name}" if with_group else told.name
    took = say("doctor-took", seconds=round(told.seconds, 1)) if told.seconds >= 1 else ""
    return (
        f'<li class="is-{told.level}">'
        f'<i role="img" aria-label="{html.escape(level)}">{SIGNS[told.level]}</i>'
        f"<b>{html.escape(name)}</b>"
        f"<span>{html.escape(told.text or level)}"
        f"{f' <small>{html.escape(took)}</small>' if took else ''}</span></li>"
    )
