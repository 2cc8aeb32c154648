"""What Prometheus is told: the usual names, seconds, and no more series than there may be."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from llm.answer_figures import AnswerFigures
from llm.metrics_prometheus import MOST_MODELS, MOST_SEEN, OTHER, SEEN_S, PrometheusFigures
from llm.screen_figures import ScreenFigures

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(figures: PrometheusFigures) -> Samples:
    families = text_string_to_metric_families(figures.text().decode("utf-8"))
    return {
        (sample.name.removeprefix("steady_chat_"), frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def labels(**told: str) -> frozenset[tuple[str, str]]:
    return frozenset(told.items())


UNKNOWN = labels(backend=OTHER, model=OTHER)


def answer(**given: object) -> AnswerFigures:
    told: dict[str, object] = {"turn_id": "t", "ended_s": 1.0, "backend": "vllm", "model": "m"}
    return AnswerFigures(**{**told, **given})  # type: ignore[arg-type]


def test_answers_are_counted_and_timed_in_seconds() -> None:
    now_s = 0.0
    figures = PrometheusFigures(lambda: (3, 2**30), clock=lambda: now_s)
    figures.answered(
        answer(turn_id="one", ttft_s=0.3, tpot_ms=25.0, itl_p50_ms=20.0, itl_p95_ms=90.0)
    )
    figures.answered(answer(finish="error", error="ServerBusyError"))
    figures.answered(answer(cached="exact", ttft_s=0.001, tpot_ms=0.1))
    figures.seen("one", ScreenFigures(longest_freeze_ms=120.0, inp_ms=80.0))
    figures.seen("two", ScreenFigures(longest_freeze_ms=300.0))
    now_s = SEEN_S
    told = samples(figures)
    model = {"backend": "vllm", "model": "m"}
    assert told["ttft_seconds_sum", labels(**model)] == 0.3
    assert told["ttft_seconds_count", labels(**model)] == 1, "the cache's times aren't a model's"
    assert told["ttft_seconds_bucket", labels(**model, le="0.2")] == 0
    assert told["ttft_seconds_bucket", labels(**model, le="0.5")] == 1
    assert told["tpot_seconds_sum", labels(**model)] == 0.025
    assert told["answers_total", labels(**model, finish="stop")] == 2
    assert told["answers_total", labels(**model, finish="error")] == 1
    assert told["itl_p50_seconds_sum", labels(**model)] == 0.02
    assert told["itl_p95_seconds_sum", labels(**model)] == 0.09
    assert told["errors_total", labels(**model, kind="ServerBusyError")] == 1
    assert told["cache_hits_total", labels(**model, kind="exact")] == 1
    assert told["freeze_seconds_sum", labels(**model)] == 0.12
    assert told["inp_seconds_count", labels(**model)] == 1
    assert told["freeze_seconds_sum", UNKNOWN] == 0.3, "of an answer that nobody has told of"
    assert told["queue_depth", labels()] == 3
    assert told["memory_bytes", labels()] == 2**30


def test_an_answer_in_several_tabs_is_told_once_by_its_worst() -> None:
    now_s = 0.0
    figures = PrometheusFigures(lambda: (0, 0), clock=lambda: now_s)
    for freeze_ms, inp_ms in ((200.0, None), (700.0, 40.0), (90.0, 250.0)):
        figures.seen("one", ScreenFigures(longest_freeze_ms=freeze_ms, inp_ms=inp_ms))
        assert ("freeze_seconds_count", UNKNOWN) not in samples(figures), "others may come"
    now_s = SEEN_S
    for _ in range(2):
        told = samples(figures)
        assert told["freeze_seconds_count", UNKNOWN] == told["inp_seconds_count", UNKNOWN] == 1
        assert told["freeze_seconds_sum", UNKNOWN] == 0.7
        assert told["inp_seconds_sum", UNKNOWN] == 0.25
        figures.seen("one", ScreenFigures(longest_freeze_ms=900.0))  # too late to count
        now_s += 2 * SEEN_S


def test_of_very_many_answers_each_is_told_and_few_are_remembered() -> None:
    figures = PrometheusFigures(lambda: (0, 0), clock=lambda: 0.0)
    for number in range(MOST_SEEN + 50):
        figures.answered(answer(turn_id=f"turn {number}"))
        figures.seen(f"turn {number}", ScreenFigures(longest_freeze_ms=100.0))
    told = samples(figures)
    (counted,) = (value for (name, _), value in told.items() if name == "freeze_seconds_count")
    assert counted == 50
    assert len(figures._seen) == len(figures._named) == MOST_SEEN


def test_gauges_are_asked_at_each_scrape() -> None:
    depths = iter((1, 7))
    figures = PrometheusFigures(lambda: (next(depths), 0))
    assert samples(figures)["queue_depth", labels()] == 1
    assert samples(figures)["queue_depth", labels()] == 7


def test_a_server_that_makes_names_up_makes_no_endless_series() -> None:
    figures = PrometheusFigures(lambda: (0, 0))
    for number in range(MOST_MODELS + 500):
        figures.answered(answer(model=f"model {number}", ttft_s=1.0, tpot_ms=1.0))
    figures.answered(answer(model="model 0"))
    told = samples(figures)
    named = {dict(each)["model"] for name, each in told if name == "answers_total"}
    assert len(named) == MOST_MODELS + 1
    others = labels(backend="vllm", model=OTHER, finish="stop")
    assert told["answers_total", others] == 500
    first = labels(backend="vllm", model="model 0", finish="stop")
    assert told["answers_total", first] == 2


def test_a_name_with_signs_in_it_is_read_back_as_it_is() -> None:
    figures = PrometheusFigures(lambda: (0, 0))
    name = 'a "quoted" \\ back\nslash 模型 {x="y"}'
    figures.answered(answer(model=name))
    assert ("answers_total", labels(backend="vllm", model=name, finish="stop")) in samples(figures)


def test_two_of_them_dont_get_in_each_others_way() -> None:
    first, second = PrometheusFigures(lambda: (0, 0)), PrometheusFigures(lambda: (0, 0))
    first.answered(answer())
    assert "answers_total" not in {name for name, _ in samples(second)}
