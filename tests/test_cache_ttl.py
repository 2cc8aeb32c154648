"""How long an answer is given again."""

from __future__ import annotations

import pytest

from llm.cache_ttl import DAY_S, HOUR_S, CacheTtl, ages
from llm.cacheable import why_not
from llm.types import Message


def refused(question: str) -> str:
    return why_not([Message("user", question)])


@pytest.mark.parametrize(
    "question",
    [
        "Which version of Python has match statements?",
        "When was Python 3.12 released?",
        "Is distutils deprecated?",
        "What is the release schedule of Debian?",
        "Who is the record holder over 100 metres?",
        "Was Lincoln the first president?",
        "Which laws are there on drones in Norway?",
        "How is income tax computed in Spain?",
        "Which fees does PayPal have?",
        "Does Safari support WebGPU?",
        "Python 的哪个版本有模式匹配？",
        "德国的签证政策是什么？",
        "个人所得税怎么计算？",
        "Safari 支持 WebGPU 吗？",
    ],
)
def test_what_ages_is_kept_for_an_hour(question: str) -> None:
    assert refused(question) == ""
    assert ages(question)
    assert CacheTtl().seconds("any", question) == HOUR_S


@pytest.mark.parametrize(
    "question",
    [
        "What is a timetable?",
        "What are their opening hours?",
        "What is the population of Oslo?",
        "Which prime minister resigned in 1956?",
        "Which ceo founded Intel?",
        "What is available on Mars?",
        "What happened in Oslo in 2025?",
        "发布流程是什么？",
        "北京人口有多少？",
        "银行营业时间是什么？",
        "汇率怎么计算？",
        "利率是什么？",
        "2025年有什么大事？",
    ],
)
def test_what_is_never_kept_needs_no_time(question: str) -> None:
    assert refused(question) == "now"
    assert not ages(question)


@pytest.mark.parametrize("question", ["What is a prime number?", "What happened in Oslo in 2021?"])
def test_what_does_not_age_is_kept_for_the_usual_time(question: str) -> None:
    assert refused(question) == ""
    assert CacheTtl().seconds("any", question) == DAY_S


def test_a_models_own_time_takes_the_usual_ones_place_and_not_that_of_what_ages() -> None:
    ttl = CacheTtl(models_s=(("long", 2 * DAY_S), ("short", 60.0)))
    assert ttl.seconds("long", "What is a prime number?") == 2 * DAY_S
    assert ttl.seconds("other", "What is a prime number?") == DAY_S
    assert ttl.seconds("long", "Is distutils deprecated?") == HOUR_S
    assert ttl.seconds("short", "Is distutils deprecated?") == 60.0
