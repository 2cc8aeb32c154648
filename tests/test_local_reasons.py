"""Why a local model can't be had: each reason is a sentence of every language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llm.catalogue import FOLDER, catalogue
from llm.errors import InvalidRequestError, ModelError, NotAModelError, Reason

LLM = Path(__file__).parent.parent / "llm"
SOURCES = [*sorted(LLM.glob("local_*.py")), *sorted(LLM.glob("model_*.py"))]
SOURCES += [LLM / "models.py", LLM / "embedded_model.py"]
CODE = {path.name: path.read_text(encoding="utf-8") for path in SOURCES}
USED = sorted({name for code in CODE.values() for name in re.findall(r'"(reason-[a-z-]+)"', code)})
HEADING = "## Reasons: local models"
VALUES: dict[str, str | int | float] = {"folder": "/data", "minutes": 10, "says": "no"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_reasons_of_the_catalogue_are_those_that_can_happen(language: str) -> None:
    text = (FOLDER / f"{language}.ftl").read_text(encoding="utf-8")
    section = text.partition(HEADING)[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^(reason-[a-z-]+) =", section, re.MULTILINE)) == USED


@pytest.mark.parametrize("file", CODE)
def test_no_reason_is_written_into_the_code(file: str) -> None:
    assert not re.findall(r"""reason ?= ?\(?\s*f?["'](?!reason-)""", CODE[file])


@pytest.mark.parametrize("name", USED)
@pytest.mark.parametrize("kind", [ModelError, NotAModelError, InvalidRequestError])
def test_every_reason_can_be_said_within_its_sentence(name: str, kind: type[ModelError]) -> None:
    error = kind(model="M", reason=Reason(name, VALUES))
    for language in ("en", "zh"):
        said = catalogue(language).say(name, **VALUES)
        assert said in error.sentence(catalogue(language))
        assert (re.search(r"[\u4e00-\u9fff]", said) is not None) == (language == "zh")


def test_a_reason_in_chinese_stands_in_a_chinese_sentence() -> None:
    error = NotAModelError(model="M", reason=Reason("reason-weights-missing"))
    assert error.sentence(catalogue("zh")) == (
        "找到了“M”，但它不是可以加载的对话模型（它缺少一部分权重）。"
    )
