"""All conversations at once: take them along, bring some in, and what was deleted."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from datetime import datetime
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_files import json_file, markdown_file
from llm.conversation_import import MAX_IMPORT_BYTES, ImportProblem
from llm.conversation_tree import Conversation, ConversationKey
from llm.daily_purge import DAY_S, KEPT_DELETED_S
from llm.errors import LLMError, StoreError
from llm.import_run import FileReport, ImportFile, ImportProgress, ImportRun
from llm.plain_markdown import plain
from llm.types import Backend
from ui import resources
from ui.backend_status import StatusPlace, watch
from ui.callback import callback
from ui.inline_code import inline_code
from ui.language import say, say_error, words
from ui.live_answer import yield_to_rerun
from ui.owner import owner, while_signed_in
from ui.time_zone import time_zone

LOOK_S = 0.2
"""How often the page looks how far an import is."""
PROBLEMS_SHOWN = 200
DELETED_SHOWN = 20

_RUN = "import_run"
_UPLOADS = "uploads"
_SHOWN = "deleted_shown"
_TROUBLE = "archive_trouble"


def draw(backend: Backend, backend_status: StatusPlace) -> None:
    """Draw the page; while an import goes on, until that is over."""
    st.title(say("page-archive"))
    trouble_place = st.empty()
    run: ImportRun | None = st.session_state.get(_RUN)
    # Asked once: it may end while this is drawn, and what was drawn for one that goes on must be
    # followed by a run that shows what became of it.
    progress = run.progress() if run is not None else None
    try:
        _draw_export(resources.archive().count(owner()))
        progress_place = _draw_import(progress)
        _draw_deleted()
    except StoreError as error:
        trouble_place.error(plain(say_error(error)))
        return
    if (trouble := st.session_state.pop(_TROUBLE, None)) is not None:
        trouble_place.error(plain(say_error(trouble)))
    if run is not None and progress is not None and not progress.done:
        _follow(run, progress_place)
    status = backend.status()
    if not status.settled:
        watch(backend, backend_status, st.empty())


# -- export --


def _draw_export(count: int) -> None:
    st.subheader(say("archive-export"))
    st.caption(say("archive-count", count=count))
    name = say("archive-file", date=datetime.now(time_zone()).strftime("%Y-%m-%d"))
    archive, mine = resources.archive(), owner()
    with st.container(horizontal=True):
        # Made when it is asked for, outside of the script's runs.
        st.download_button(
            say("archive-json"),
            while_signed_in(partial(json_file, archive, mine)),
            file_name=f"{name}.json",
            mime="application/json",
            key="export_json",
            icon=":material/download:",
            help=say("archive-json-help"),
            on_click="ignore",
            disabled=not count,
        )
        st.download_button(
            say("archive-markdown"),
            while_signed_in(partial(markdown_file, archive, mine, words().language, time_zone())),
            file_name=f"{name}.zip",
            mime="application/zip",
            key="export_markdown",
            icon=":material/folder_zip:",
            help=say("archive-markdown-help"),
            on_click="ignore",
            disabled=not count,
        )


# -- import --


def _draw_import(progress: ImportProgress | None) -> DeltaGenerator:
    """Draw what an import begins with, and what became of the last one.

    Returns:
        The place for how far the present one is.
    """
    st.subheader(say("archive-import"))
    st.caption(say("archive-import-explain"))
    st.html(_upload_words())
    key = f"upload-{st.session_state.setdefault(_UPLOADS, 0)}"
    going = progress is not None and not progress.done
    uploaded = st.file_uploader(
        say("archive-upload"),
        type=["json", "zip"],
        accept_multiple_files=True,
        key=key,
        disabled=going,
    )
    begin_place, progress_place = st.empty(), st.empty()
    if uploaded and not going:
        begin_place.button(
            say("archive-import-begin", count=len(uploaded)),
            key="import_begin",
            type="primary",
            on_click=callback(_begin),
            args=(key,),
        )
    report_place = st.empty()
    if progress is not None and not going:
        with report_place.container():
            _draw_report(progress)
    return progress_place


def _upload_words() -> str:
    """A style sheet by which the field says its own words, which are English, in the reader's."""
    field = '[data-testid="stFileUploaderDropzone"]'
    words = {
        f'{field} > span button [data-testid="stMarkdownContainer"] p': "archive-upload-button",
        f'{field} [data-testid="stFileUploaderDropzoneInstructions"] span': "archive-upload-limit",
    }
    rules = []
    for part, word in words.items():
        told = json.dumps(say(word, limit=MAX_IMPORT_BYTES // 1_000_000), ensure_ascii=False)
        rules.append(
            f"{part} {{ font-size: 0; }} {part}::after {{ font-size: 0.875rem; content: {told}; }}"
        )
    return f"<style>{' '.join(rules)}</style>"


def _begin(key: str) -> None:
    files = [ImportFile(each.name, each.getvalue) for each in st.session_state[key]]
    run = ImportRun(resources.archive(), owner(), files)
    st.session_state[_RUN] = run  # before it begins, or one might begin that nobody is told of
    st.session_state[_UPLOADS] += 1  # the field is empty again
    run.start()


def _follow(run: ImportRun, place: DeltaGenerator) -> None:
    """Show how far an import is; the page reruns when it is over."""
    shown = None
    while not run.wait(LOOK_S):
        progress = run.progress()
        if progress != shown and progress.files:
            step = say("archive-waiting") if progress.waiting else _step(progress.files[-1])
            place.progress(progress.share, step)
            shown = progress
        yield_to_rerun()
    st.rerun()


def _step(report: FileReport) -> str:
    file = inline_code(report.name)
    if report.found is None:
        return say("archive-reading", file=file)
    return say("archive-importing", file=file, taken=report.taken, found=report.found)


def _draw_report(progress: ImportProgress) -> None:
    """What became of each file: how many came in, and what couldn't be read."""
    several = len(progress.files) > 1
    for report in progress.files:
        told = _told(report)
        _box(report)(f"{inline_code(report.name)} {told}" if several else told)
    rows = [
        _row(report.name if several else "", problem)
        for report in progress.files
        for problem in report.problems
    ]
    if rows:
        st.html(_table(rows[:PROBLEMS_SHOWN]))
    if len(rows) > PROBLEMS_SHOWN:
        st.caption(say("archive-problem-more", count=len(rows) - PROBLEMS_SHOWN))
    st.button(say("archive-report-close"), key="import_close", on_click=callback(_close_report))


def _box(report: FileReport) -> Callable[[str], object]:
    if report.error is not None:
        return st.error
    return st.warning if report.problems else st.success


def _told(report: FileReport) -> str:
    parts = []
    if (imported := report.imported) is not None and report.found is not None:
        parts.append(say("archive-report-added", count=imported.added))
        for name in ("known", "restored"):
            if count := getattr(imported, name):
                parts.append(say(f"archive-report-{name}", count=count))
    if count := sum(problem.left_out for problem in report.problems):
        parts.append(say("archive-report-left-out", count=count))
    told = " · ".join(parts)
    if report.error is None:
        return told
    why = plain(say_error(report.error))
    if isinstance(report.error, StoreError):
        why = f"{why} {say('archive-report-again')}"
    return "\n\n".join(each for each in (why, told) if each)


def _row(file: str, problem: ImportProblem) -> tuple[str, str, str]:
    where = [file, problem.file, str(problem.row) if problem.row else ""]
    reason = problem.reason.sentence(words())
    how = "left-out" if problem.left_out else "partly"
    return (
        " · ".join(each for each in where if each),
        problem.title,
        say(f"archive-problem-{how}", reason=reason),
    )


def _table(rows: list[tuple[str, str, str]]) -> str:
    head = "".join(
        f"<th>{html.escape(say(f'archive-problem-{name}'))}</th>"
        for name in ("row", "title", "what")
    )
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(each)}</td>" for each in row) + "</tr>" for row in rows
    )
    return (
        f'<table class="steady-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def _close_report() -> None:
    st.session_state.pop(_RUN, None)


# -- deleted --


def _draw_deleted() -> None:
    st.subheader(say("archive-deleted"))
    shown = st.session_state.setdefault(_SHOWN, DELETED_SHOWN)
    heads = resources.archive().deleted(owner(), shown + 1)
    if not heads:
        st.caption(say("archive-deleted-none"))
        return
    st.caption(say("archive-deleted-explain", days=round(KEPT_DELETED_S / DAY_S)))
    for head in heads[:shown]:
        _draw_deleted_one(head)
    if len(heads) > shown:
        st.button(
            say("archive-more"), key="deleted_more", on_click=callback(_show_more), type="tertiary"
        )


def _draw_deleted_one(head: Conversation) -> None:
    name = head.key.conversation_id
    title = head.title or say("export-untitled")
    date = datetime.fromtimestamp(head.deleted_s or 0.0, time_zone()).strftime("%Y-%m-%d")
    with st.container(key=f"deleted-{name}", horizontal=True, vertical_alignment="center"):
        st.html(
            f'<div class="steady-deleted">{html.escape(title)}'
            f"<small>{html.escape(say('archive-deleted-on', date=date))}</small></div>"
        )
        st.button(
            say("archive-restore"),
            key=f"restore-{name}",
            icon=":material/restore_from_trash:",
            on_click=callback(_restore),
            args=(head.key,),
        )
        with st.popover(say("archive-for-good"), icon=":material/delete_forever:"):
            st.markdown(say("archive-for-good-question"))
            st.button(
                say("archive-for-good"),
                key=f"for-good-{name}",
                type="primary",
                on_click=callback(_delete_for_good),
                args=(head.key,),
            )


def _restore(key: ConversationKey) -> None:
    _do(lambda: resources.chat().restore(key))


def _delete_for_good(key: ConversationKey) -> None:
    _do(lambda: resources.archive().delete_for_good(key))


def _do(change: Callable[[], None]) -> None:
    try:
        change()
    except LLMError as error:
        st.session_state[_TROUBLE] = error


def _show_more() -> None:
    st.session_state[_SHOWN] += DELETED_SHOWN
