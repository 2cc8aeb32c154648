"""How fast, how smooth, how reliable: the figures of all answers, and their course over time."""

from __future__ import annotations

import html
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from llm import errors
from llm.errors import StoreError
from llm.metrics_report import (
    INP_GOOD_MS,
    PERIODS,
    MetricsReport,
    Percentiles,
    Period,
    ProcessFigures,
    csv_file,
    report,
)
from llm.types import Backend
from ui import resources
from ui.backend_status import StatusPlace, watch
from ui.language import say
from ui.metrics_charts import Line, draw_answers, draw_lines
from ui.owner import while_signed_in
from ui.time_zone import time_zone

KEPT_WAIT_S = 0.3
"""What has just ended is to be seen; a database that is slow isn't waited for longer."""

_PERIOD, _BACKEND, _MODEL = "metrics_period", "metrics_backend", "metrics_model"
_UNKNOWN = "–"
_KINDS = (
    ("request", errors.InvalidRequestError),
    ("memory", errors.OutOfMemoryError),
    ("model", errors.ModelError),
    ("busy", errors.ServerBusyError),
    ("connection", errors.ConnectionLostError),
    ("server", errors.ServerError),
    ("stalled", errors.StalledError),
    ("queue", errors.QueueFullError),
    ("shutdown", errors.ShuttingDownError),
)


def draw(backend: Backend, backend_status: StatusPlace) -> None:
    """Draw the page."""
    st.title(say("page-metrics"))
    st.caption(say("metrics-explain"))
    resources.metrics().flush(KEPT_WAIT_S)
    st.session_state.setdefault(_PERIOD, "day")
    period: Period = st.session_state[_PERIOD] or "day"
    kind, model = (st.session_state.get(key, "") for key in (_BACKEND, _MODEL))
    try:
        told = report(resources.database(), period, backend=kind, model=model, offset_s=_offset_s())
    except StoreError:
        st.warning(say("metrics-in-trouble"), icon=":material/monitoring:")
    else:
        # A place for each part: what a part has lost doesn't move, and so double, what is below it.
        with st.container():
            _draw_choice(told, kind, model)
        with st.container():
            if told.answers:
                _draw_report(told, period, kind, model)
            else:
                # Names are those of the whole period: with any, only the choice has left all out.
                why = "filtered" if told.names else period
                st.info(say(f"metrics-empty-{why}"), icon=":material/monitoring:")
        with st.container():
            _draw_process(told.process)
    if not backend.status().settled:
        watch(backend, backend_status, st.empty())


def _draw_choice(told: MetricsReport, kind: str, model: str) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            say("metrics-period"),
            list(PERIODS),
            key=_PERIOD,
            format_func=lambda name: say(f"metrics-period-{name}"),
            required=True,
        )
        for key, chosen, at in ((_BACKEND, kind, 0), (_MODEL, model, 1)):
            names = {names[at] for names in told.names} | {chosen}
            st.selectbox(
                say(key.replace("_", "-")),
                ["", *sorted(names - {""})],
                key=key,
                format_func=partial(_choice_label, key),
                width=200,
            )


def _choice_label(key: str, name: str) -> str:
    if not name:
        return say(f"{key.replace('_', '-')}-any")
    return _backend_name(name) if key == _BACKEND else name


def _draw_report(told: MetricsReport, period: Period, kind: str, model: str) -> None:
    with st.container(horizontal=True, key="metrics_figures"):
        ttft_s, speed = told.times["ttft_s"].values[0], told.tokens_per_s
        cached = told.exact + told.similar
        for name, value in (
            ("answers", say("metrics-count", count=told.answers)),
            ("ttft", _seconds(ttft_s)),
            ("speed", _UNKNOWN if speed is None else say("metrics-speed", speed=speed)),
            ("stopped", say("metrics-share", share=told.share(told.stopped))),
            ("failed", say("metrics-share", share=told.share(told.failed))),
            ("cached", say("metrics-share", share=told.share(cached))),
        ):
            st.metric(say(f"metrics-figure-{name}"), value, help=say(f"metrics-help-{name}"))
    st.subheader(say("metrics-speed-title"))
    _table(
        ["", "p50", "p95", "p99"],
        [
            _row(say("metrics-ttft"), told.times["ttft_s"], 1000),
            _row(say("metrics-tpot"), told.times["tpot_ms"]),
            _row(say("metrics-itl-p50"), told.times["itl_p50_ms"]),
            _row(say("metrics-itl-p95"), told.times["itl_p95_ms"]),
        ],
    )
    st.caption(_method(told))
    st.subheader(say("metrics-screen-title"))
    _draw_screen(told)
    st.subheader(say("metrics-course-title"))
    _draw_courses(told)
    st.subheader(say("metrics-models-title"))
    _draw_models(told)
    if told.errors:
        st.subheader(say("metrics-errors-title"))
        _draw_errors(told.errors)
    # Made when it is asked for, outside of the script's runs.
    st.download_button(
        say("metrics-export"),
        while_signed_in(partial(csv_file, resources.database(), period, backend=kind, model=model)),
        file_name="steady-chat-metrics.csv",
        mime="text/csv",
        key="metrics_export",
        icon=":material/download:",
        help=say("metrics-export-help"),
        on_click="ignore",
    )


def _method(told: MetricsReport) -> str:
    if told.every == 1:
        return say("metrics-method")
    return f"{say('metrics-method')} {say('metrics-sampled', every=told.every)}"


def _draw_screen(told: MetricsReport) -> None:
    freeze_ms, inp_ms = told.times["longest_freeze_ms"], told.times["inp_ms"]
    if not freeze_ms.count and not inp_ms.count:
        st.caption(say("metrics-screen-none"))
        return
    _table(
        ["", "p50", "p75", "p95"],
        [_row(say("metrics-freeze"), freeze_ms), _row(say("metrics-inp"), inp_ms)],
    )
    p75_ms = inp_ms.values[1]
    if p75_ms is not None:
        verdict = "good" if p75_ms <= INP_GOOD_MS else "slow"
        st.caption(say(f"metrics-inp-{verdict}", value=p75_ms, limit=INP_GOOD_MS))


def _draw_courses(told: MetricsReport) -> None:
    buckets, width_s = told.buckets, told.width_s
    unit = {300.0: "minutes", 3600.0: "hour"}.get(width_s, "day")
    draw_answers(say(f"metrics-course-answers-{unit}"), buckets, width_s)
    if any(bucket.ttft_p50_s is not None for bucket in buckets):
        ttft: dict[str, Line] = {
            "p50": lambda bucket: bucket.ttft_p50_s,
            "p95": lambda bucket: bucket.ttft_p95_s,
        }
        draw_lines(say("metrics-course-ttft"), buckets, width_s, ttft)
    if any(bucket.freeze_p75_ms is not None for bucket in buckets):
        freeze: dict[str, Line] = {"p75": lambda bucket: bucket.freeze_p75_ms}
        draw_lines(say("metrics-course-freeze"), buckets, width_s, freeze)


def _draw_process(told: ProcessFigures | None) -> None:
    """This process now, and each by itself in the period: the former can be told apart."""
    in_line, memory_bytes = resources.gauges()
    st.subheader(say("metrics-process-title"))
    said = [say("metrics-process-now", queue=in_line, memory=memory_bytes / 2**20)]
    if told is not None:
        highest = told.memory_most_bytes / 2**20
        queue, most = told.queue_p95, told.queue_most
        said.append(say("metrics-process-each", queue=queue, most=most, highest=highest))
    said.append(say("metrics-process-several"))
    st.caption(" ".join(said))


def _draw_models(told: MetricsReport) -> None:
    heads = ["model", "answers", "ttft-p50", "ttft-p95", "tpot-p50", "speed", "stopped", "failed"]
    with_servers = any(each.server for each in told.models)
    if with_servers:
        heads.insert(1, "server")
    rows = []
    for each in told.models:
        p50_s, p95_s, _ = each.ttft_s.values
        speed = each.tokens_per_s
        rows.append(
            [
                " · ".join(part for part in (each.model, _backend_name(each.backend)) if part),
                *([each.server or _UNKNOWN] if with_servers else []),
                say("metrics-count", count=each.answers),
                _seconds(p50_s),
                _seconds(p95_s),
                _ms(each.tpot_ms.values[0]),
                _UNKNOWN if speed is None else say("metrics-speed", speed=speed),
                say("metrics-count", count=each.stopped),
                say("metrics-count", count=each.failed),
            ]
        )
    _table([say(f"metrics-head-{name}") for name in heads], rows)


def _draw_errors(told: Mapping[str, int]) -> None:
    counts: Counter[str] = Counter()
    classes: dict[str, list[str]] = defaultdict(list)
    for name, count in told.items():
        kind = _kind_of(name)
        counts[kind] += count
        classes[kind].append(name)
    _table(
        [say("metrics-head-error"), say("metrics-head-count"), say("metrics-head-log-name")],
        [
            [
                say(f"metrics-error-{kind}"),
                say("metrics-count", count=count),
                ", ".join(classes[kind]),
            ]
            for kind, count in counts.most_common()
        ],
    )


def _kind_of(name: str) -> str:
    known = getattr(errors, name, None)
    if isinstance(known, type):
        for kind, parent in _KINDS:
            if issubclass(known, parent):
                return kind
    return "other"


def _row(name: str, told: Percentiles, factor: float = 1) -> list[str]:
    return [name, *(_ms(None if each is None else factor * each) for each in told.values)]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """As HTML: a name's characters are no markup, and there is nothing to sort or to edit."""

    def line(cells: Sequence[str], kind: str) -> str:
        return "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells)

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    st.html(
        '<div class="steady-figures"><table class="steady-table">'
        f"<thead><tr>{line(heads, 'th')}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _ms(value: float | None) -> str:
    if value is None:
        return _UNKNOWN
    return say("metrics-ms", value=value) if value < 1000 else _seconds(value / 1000)


def _seconds(value: float | None) -> str:
    if value is None:
        return _UNKNOWN
    return _ms(1000 * value) if value < 1 else say("metrics-seconds", value=value)


def _backend_name(kind: str) -> str:
    return say(f"backend-{kind}") if kind in ("local", "vllm", "scripted") else kind


def _offset_s() -> float:
    offset = datetime.now(UTC).astimezone(time_zone()).utcoffset()
    return offset.total_seconds() if offset is not None else 0.0
