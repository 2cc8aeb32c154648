"""The page of figures, by Streamlit's AppTest."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from llm import errors, metrics_report
from llm.answer_figures import AnswerFigures
from llm.errors import StoreGoneError
from llm.screen_figures import ScreenFigures
from pages import metrics_page
from tests.driven_backend import PATIENCE_S
from tests.test_errors_and_catalogue import ERRORS
from ui import resources

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps({"default": {"text": "You asked: {question}"}}), encoding="utf-8")
    monkeypatch.setenv("STEADY_CHAT_BACKENDS", "scripted")
    monkeypatch.setenv("STEADY_CHAT_SCRIPTS_FILE", str(scripts))
    monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("STEADY_CHAT_DATABASE_URL", f"sqlite:///{tmp_path / 'kept.sqlite3'}")
    st.cache_resource.clear()
    yield
    resources.cache().close()
    resources.chat().close()
    st.cache_resource.clear()


def page(language: str = "") -> AppTest:
    app = AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=60)
    app._page_hash = calc_hash("figures")
    if language:
        app.query_params["lang"] = language
    app.run()
    assert not app.exception
    return app


def keep(*told: AnswerFigures, screen: ScreenFigures | None = None) -> None:
    for each in told:
        resources.metrics().answered(each)
        if screen is not None:
            resources.metrics().seen(each.turn_id, screen)
    assert resources.metrics().flush(3 * PATIENCE_S)


def answer(number: int = 1, ago_s: float = 60, **given: object) -> AnswerFigures:
    told = AnswerFigures(str(number), time.time() - ago_s, "vllm", "m", ttft_s=0.25, tpot_ms=20.0)
    return replace(told, **given)  # type: ignore[arg-type]


def figures(app: AppTest) -> dict[str, str]:
    return {each.label: each.value for each in app.metric}


def tables(app: AppTest) -> str:
    return "".join(str(each.proto.body) for each in app.get("html"))


@pytest.mark.parametrize(("language", "said"), [("en", "Ask something"), ("zh", "提一个问题")])
def test_where_there_is_nothing_it_is_said_in_words(language: str, said: str) -> None:
    app = page(language)
    assert said in app.info[0].value
    assert not app.metric
    assert not app.get("download_button")


def test_the_figures_of_what_was_answered_are_shown() -> None:
    keep(
        answer(1),
        answer(2, finish="abort"),
        answer(3, cached="exact"),
        answer(4, finish="error", error="ServerBusyError", ttft_s=None, tpot_ms=None),
        screen=ScreenFigures(120.0, 240.0),
    )
    app = page()
    assert figures(app) == {
        "Answers": "4",
        "TTFT p50": "250 ms",
        "Tokens/s": "50",
        "Stopped": "25%",
        "Failed": "25%",
        "From the cache": "25%",
    }
    assert "<td>Longest freeze in an answer</td><td>120 ms</td>" in tables(app)
    assert "The server was busy" in tables(app)
    assert any("INP p75 is 240 ms: too slow" in each.value for each in app.caption)
    assert len(app.get("vega_lite_chart") or app.get("arrow_vega_lite_chart")) == 3


def test_a_period_and_a_model_can_be_chosen() -> None:
    keep(answer(1), answer(2, 7200), answer(3, 7200, model="other"), answer(4, 10 * 86_400))
    app = page()
    assert figures(app)["Answers"] == "3"
    app.segmented_control(key="metrics_period").set_value("all").run()
    assert figures(app)["Answers"] == "4"
    app.selectbox(key="metrics_model").set_value("other").run()
    assert figures(app)["Answers"] == "1"
    app.segmented_control(key="metrics_period").set_value("hour").run()
    assert "none of the backend and model chosen" in app.info[0].value
    assert app.selectbox(key="metrics_model").value == "other"
    assert not app.exception


def test_a_period_without_an_answer_isnt_put_on_the_choice() -> None:
    keep(answer(1, 7200))
    app = page()
    app.selectbox(key="metrics_model").set_value("m").run()
    app.segmented_control(key="metrics_period").set_value("hour").run()
    assert "No answer has ended in the last hour" in app.info[0].value


@pytest.mark.parametrize(
    ("language", "said"), [("en", "of one answer in 2,"), ("zh", "每 2 个回答中的一个")]
)
def test_that_percentiles_are_of_some_is_said(
    monkeypatch: pytest.MonkeyPatch, language: str, said: str
) -> None:
    monkeypatch.setattr(metrics_report, "MOST_SAMPLED", 2)
    keep(*(answer(number) for number in range(4)), screen=ScreenFigures(120.0, 80.0))
    app = page(language)
    assert any(said in each.value for each in app.caption)


def test_a_quick_reply_is_said_to_be_good() -> None:
    keep(answer(1), screen=ScreenFigures(120.0, 80.0))
    assert any("INP p75 is 80 ms: good (up to 200 ms)." in e.value for e in page().caption)


def test_this_process_now_and_each_by_itself_in_the_period_are_told_apart() -> None:
    resources.metrics().sample(2, 123_456 * 2**20)
    keep()
    for kept in ((), (answer(1),)):  # with an answer in the period and without
        keep(*kept)
        (told,) = (each.value for each in page().caption if "drew this page, now" in each.value)
        assert "now: 0 in line, " in told
        assert "once a minute: 2 in line (p95), 2 at most; 123,456 MB at most." in told
        assert "aren’t added up" in told


def test_all_plots_have_one_time_axis() -> None:
    keep(*(answer(n, 3000 * n) for n in range(1, 9)), screen=ScreenFigures(1500.0, 80.0))
    app = page()
    charts = app.get("vega_lite_chart") or app.get("arrow_vega_lite_chart")
    specs = [json.loads(each.proto.spec) for each in charts]
    assert len(specs) == 3
    for part in ("scale", "axis"):
        assert len({json.dumps(each["encoding"]["x"][part]) for each in specs}) == 1, part
    extents = {
        (a["minExtent"], a["maxExtent"], a["labelLimit"])
        for a in (s["encoding"]["y"]["axis"] for s in specs)
    }
    assert len(extents) == 1, "labels of different widths move one plot beside the other"


def test_a_model_on_several_servers_is_a_row_for_each() -> None:
    keep(
        answer(1, server="gpu-1"),
        answer(2, server="gpu-2", finish="abort"),
        answer(3, server="gpu-2", finish="error", error="StalledError"),
        answer(4, backend="local"),
    )
    told = tables(page())
    assert "<th>Server</th>" in told
    cells = "<td>250 ms</td><td>250 ms</td><td>20 ms</td><td>50</td>"
    assert f"<td>m · vLLM</td><td>gpu-1</td><td>1</td>{cells}<td>0</td><td>0</td>" in told
    assert f"<td>m · vLLM</td><td>gpu-2</td><td>2</td>{cells}<td>1</td><td>1</td>" in told
    assert f"<td>m · Local</td><td>–</td><td>1</td>{cells}<td>0</td><td>0</td>" in told


def test_without_servers_there_is_no_column_for_them() -> None:
    keep(answer(1))
    assert "<th>Server</th>" not in tables(page())


def test_a_models_name_is_no_markup() -> None:
    name = '<img src=x onerror=alert(1)> **a** "b"'
    keep(answer(1, model=name))
    told = tables(page())
    assert "<img" not in told
    assert "&lt;img src=x onerror=alert(1)&gt; **a** &quot;b&quot;" in told


def test_the_file_is_made_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(metrics_page, "csv_file", lambda *given, **more: made.append(given))
    keep(answer(1))
    assert page().get("download_button")
    assert not made


def test_a_database_in_trouble_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object, **more: object) -> None:
        raise StoreGoneError(place="here")

    monkeypatch.setattr(metrics_page, "report", fails)
    app = page()
    assert any("can’t be read" in each.value for each in app.warning)


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_is_counted_under_some_word(kind: type[errors.LLMError]) -> None:
    told = metrics_page._kind_of(kind.__name__)
    assert told in {"other", *(name for name, _ in metrics_page._KINDS)}
    if issubclass(kind, errors.ServerBusyError):
        assert told == "busy", "the nearest word, not the widest"


@pytest.mark.parametrize("name", ["NoSuchError", "Reason", "Value", "__doc__", ""])
def test_what_an_older_version_called_an_error_is_something_else(name: str) -> None:
    assert metrics_page._kind_of(name) == "other"
