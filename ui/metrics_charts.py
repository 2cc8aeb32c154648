"""The plots of the metrics page, in colours that are read on a light page and on a dark one.

Source of the figures: https://vega.github.io/vega-lite/docs/. Times of day are the browser's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from llm.metrics_report import Bucket
from ui.language import say

CALM, WARM, BAD = "#14a098", "#d98a1f", "#dc4c4c"
"""At least 3:1 on either page: https://www.w3.org/TR/WCAG22/#non-text-contrast."""

_HEIGHT = 220
_LABELS_PX = 56
_DAY_S = 86_400.0
_FEW = 40
_ROWS = "rows"
_LEGEND: dict[str, Any] = {"title": None, "orient": "top", "offset": 4, "padding": 0}

Line = Callable[[Bucket], float | None]


def draw_lines(
    title: str, buckets: Sequence[Bucket], width_s: float, lines: Mapping[str, Line]
) -> None:
    """One or two figures over time, by their names in the legend."""
    import altair as alt

    rows = [
        {"t": 1000 * (bucket.from_s + width_s / 2), "line": name, "value": value}
        for bucket in buckets
        for name, line in lines.items()
        # Also where there is none: a line has its gaps.
        for value in (line(bucket),)
    ]
    colours = alt.Scale(domain=list(lines), range=[CALM, WARM][: len(lines)])
    legend = alt.Legend(**_LEGEND) if len(lines) > 1 else None
    chart = (
        alt.Chart(alt.NamedData(name=_ROWS))
        .mark_line(point=alt.OverlayMarkDef(size=30 if len(buckets) <= _FEW else 8), strokeWidth=2)
        .encode(
            x=_time_axis(alt, buckets, width_s),
            y=_height_axis(alt, "value"),
            color=alt.Color("line:N", scale=colours, legend=legend),
            tooltip=_tooltips(alt, "t", "line", "value"),
        )
    )
    _draw(title, chart, rows)


def draw_answers(title: str, buckets: Sequence[Bucket], width_s: float) -> None:
    """How many answers there were, those that were stopped and that failed apart."""
    import altair as alt

    names = [say(f"metrics-outcome-{kind}") for kind in ("whole", "stopped", "failed")]
    rows = [
        {
            "t": 1000 * bucket.from_s,
            "kind": name,
            "at": at,
            "value": count,
        }
        for bucket in buckets
        for at, (name, count) in enumerate(
            zip(
                names,
                (
                    bucket.answers - bucket.stopped - bucket.failed,
                    bucket.stopped,
                    bucket.failed,
                ),
                strict=True,
            )
        )
        if count or not bucket.answers
    ]
    chart = (
        alt.Chart(alt.NamedData(name=_ROWS))
        .mark_bar()
        .encode(
            x=_time_axis(alt, buckets, width_s, bars=True),
            y=_height_axis(alt, "value", whole=True),
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=names, range=[CALM, WARM, BAD]),
                legend=alt.Legend(**_LEGEND),
            ),
            order="at:Q",
            tooltip=_tooltips(alt, "t", "kind", "value"),
        )
    )
    _draw(title, chart, rows)


def _draw(title: str, chart: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    st.caption(title)
    # Given to Altair, every one of the rows would be held against its schema: 60 ms for a season.
    spec = {**chart.properties(height=_HEIGHT).to_dict(), "data": {"values": rows}}
    st.vega_lite_chart(spec=spec, width="stretch", theme="streamlit", alt=title)


def _time_axis(alt: Any, buckets: Sequence[Bucket], width_s: float, *, bars: bool = False) -> Any:
    """The same for all plots of these buckets. Digits alone: names of months would be English."""
    ends_s = (buckets[0].from_s, buckets[-1].from_s + width_s)
    # As expressions: of a bare number Vega-Lite makes `datetime(number)`, and with that in its
    # domain Streamlit's Vega draws no axis and all points on one place.
    domain = [alt.ExprRef(str(round(1000 * each_s))) for each_s in ends_s]
    scale = alt.Scale(domain=domain, nice=False)
    axis = alt.Axis(
        title=None,
        format="%m-%d" if width_s >= _DAY_S else "%H:%M",
        grid=False,
        tickCount=6,
        labelOverlap=True,
        tickMinStep=1000 * width_s,
    )
    if not bars:
        return alt.X("t:T", axis=axis, scale=scale)
    # Each bar fills its stretch of time.
    units = {300.0: ("yearmonthdatehoursminutes", 5), 3600.0: ("yearmonthdatehours", 1)}
    unit, step = units.get(width_s, ("yearmonthdate", 1))
    return alt.X("t:T", axis=axis, scale=scale, timeUnit=alt.TimeUnitParams(unit=unit, step=step))


def _height_axis(alt: Any, name: str, *, whole: bool = False) -> Any:
    axis = alt.Axis(
        title=None,
        tickCount=4,
        # So wide for whatever stands there: plots below one another have one time axis.
        minExtent=_LABELS_PX,
        maxExtent=_LABELS_PX,
        labelLimit=_LABELS_PX - 8,
        **({"format": "d", "tickMinStep": 1} if whole else {}),
    )
    return alt.Y(f"{name}:Q", axis=axis, scale=alt.Scale(zero=True))


def _tooltips(alt: Any, time: str, name: str, value: str) -> list[Any]:
    return [
        alt.Tooltip(f"{time}:T", title=say("metrics-time"), format="%Y-%m-%d %H:%M"),
        alt.Tooltip(f"{name}:N", title=say("metrics-figure")),
        alt.Tooltip(f"{value}:Q", title=say("metrics-value"), format=".3~g"),
    ]
