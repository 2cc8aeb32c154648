"""Every error has a sentence, in every language, and no sentence lacks a value."""

from __future__ import annotations

import inspect
import re
from datetime import date
from pathlib import Path

import pytest
from fluent.syntax import FluentParser, ast
from fluent.syntax.visitor import Visitor

from llm import errors
from llm.catalogue import FOLDER, LANGUAGES, catalogue, choose_language
from llm.errors import LLMError, ServerError


def tree(kind: type[LLMError] = LLMError) -> list[type[LLMError]]:
    """The class and all below it, those of this app."""
    below = [leaf for child in kind.__subclasses__() for leaf in tree(child)]
    return [kind, *below] if kind.__module__ == errors.__name__ else below


ERRORS = tree()

# A value for whatever a sentence may say.
SAMPLES: dict[str, str | int | float] = {
    "url": "http://127.0.0.1:8000/v1",
    "host": "gpu-box",
    "model": "Qwen2.5-1.5B",
    "reason": "it has no head",
    "kind": "ZeroDivisionError",
    "setting": "vllm_base_url",
    "parameter": "temperature",
    "package": "bitsandbytes",
    "folder": "/data",
    "value": 2.5,
    "low": 0,
    "high": 2,
    "chars": 500_000,
    "limit": 400_000,
    "over": 100_000,
    "prompt_tokens": 2100,
    "seconds": 60,
    "status": 500,
    "needed_mb": 300,
    "free_mb": 12,
    "allowed": "local, vllm",
    "nearest": "model",
    "minutes": 10,
    "says": "system role not supported",
    "name": "gpu-1",
    "place": "/data/conversations.sqlite3",
    "count": 3,
}


def messages(language: str) -> dict[str, ast.Message]:
    text = (FOLDER / f"{language}.ftl").read_text(encoding="utf-8")
    resource = FluentParser().parse(text)
    junk = [entry for entry in resource.body if isinstance(entry, ast.Junk)]
    assert not junk, f"{language}.ftl: {junk[0].content}"
    found = [entry for entry in resource.body if isinstance(entry, ast.Message)]
    names = [message.id.name for message in found]
    assert len(names) == len(set(names)), f"{language}.ftl says something twice"
    return dict(zip(names, found, strict=True))


class Variables(Visitor):
    """Collects the names of the variables in a message."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_VariableReference(self, node: ast.VariableReference) -> None:  # noqa: N802
        self.names.add(node.id.name)


def variables(message: ast.Message) -> set[str]:
    visitor = Variables()
    visitor.visit(message)
    return visitor.names


def documented_values(kind: type[LLMError]) -> set[str]:
    """What `Values:` in the class's docstring names; what its parents name counts too."""
    names: set[str] = set()
    for one in kind.__mro__:
        told = re.search(r"Values: (.*)", inspect.getdoc(one) or "") if one is not object else None
        if told and issubclass(one, LLMError):
            listed = re.sub(r"\(.*?\)", "", told[1])
            names.update(re.findall(r"[a-z_]+", listed.partition(" and ")[0]))
    return names


def test_the_languages_are_files_and_the_files_are_languages() -> None:
    assert {path.stem for path in FOLDER.glob("*.ftl")} == set(LANGUAGES)


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_each_language_says_what_english_says_with_the_same_values(language: str) -> None:
    english, other = messages("en"), messages(language)
    assert list(other) == list(english), "the same sentences, in the same order"
    differing = {name for name in english if variables(english[name]) != variables(other[name])}
    assert not differing


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_is_empty_or_left_in_english(language: str) -> None:
    for name in messages("en"):
        if name.startswith(("error-", "reason-")):
            values = {key: SAMPLES[key] for key in variables(messages(language)[name])}
            said = catalogue(language).say(name, **values)
            assert said.strip() == said != ""
            assert (re.search(r"[\u4e00-\u9fff]", said) is not None) == (language == "zh")


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_sentence_of_its_own(kind: type[LLMError]) -> None:
    if kind in (LLMError, ServerError):  # roots: they are never raised themselves
        return
    assert "message_id" in vars(kind), f"{kind.__name__} speaks its parent's sentence"
    others = [other for other in ERRORS if other not in (kind, LLMError, ServerError)]
    assert kind.message_id not in {other.message_id for other in others}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_can_be_said_with_its_documented_values(
    kind: type[LLMError], language: str
) -> None:
    if kind is LLMError:  # the root: it is never raised itself
        return
    names = documented_values(kind)
    error = kind(**{name: SAMPLES[name] for name in names if name in SAMPLES})
    said = catalogue(language).say(error.message_id, **error.values)
    assert "{" not in said
    if language == "en":
        assert str(error) == said
    needed = variables(messages(language)[error.message_id])
    for name in needed & {"url", "model", "host", "package", "folder", "setting"}:
        assert str(SAMPLES[name]) in said


def test_the_docstring_draws_the_whole_tree() -> None:
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    assert sorted(drawn) == sorted(kind.__name__ for kind in ERRORS if kind is not LLMError)


def test_every_error_of_the_catalogue_is_one_that_can_happen() -> None:
    said = {name for name in messages("en") if name.startswith("error-")}
    assert said == {kind.message_id for kind in ERRORS}


def test_every_reason_of_the_catalogue_is_given_somewhere_and_none_is_missing() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8") for path in Path(errors.__file__).parent.glob("*.py")
    )
    given = set(re.findall(r'"(reason-[a-z0-9-]+)"', sources))
    assert given == {name for name in messages("en") if name.startswith("reason-")}


def test_a_reason_is_said_in_the_language_of_its_error() -> None:
    error = errors.SettingsError(setting="seed", reason=errors.Reason("reason-whole-number"))
    assert error.sentence(catalogue("zh")) == "设置项“seed”有误：必须是整数"
    assert str(error) == "The setting “seed” is not right: it must be a whole number"


def test_an_unknown_language_falls_back_to_the_first() -> None:
    assert catalogue("tlh").language == next(iter(LANGUAGES))
    assert catalogue("zh").language == "zh"


@pytest.mark.parametrize(
    ("locale", "language"),
    [
        ("zh-Hans-CN", "zh"),
        ("zh_TW.UTF-8", "zh"),
        ("ZH", "zh"),
        ("en-GB", "en"),
        ("de-DE", "en"),
        ("", "en"),
        (None, "en"),
    ],
)
def test_a_locale_chooses_the_nearest_language(locale: str | None, language: str) -> None:
    assert choose_language(locale) == language


def test_a_sentence_without_its_value_is_refused_and_not_said_with_a_hole() -> None:
    with pytest.raises(ValueError, match="error-server-busy"):
        catalogue("en").say("error-server-busy")
    with pytest.raises(LookupError):
        catalogue("en").say("error-that-is-not")


def test_values_come_through_without_isolation_marks() -> None:
    said = catalogue("zh").say("error-server-busy", url="http://h/v1")
    assert "http://h/v1" in said
    assert not re.search("[\u2066-\u2069]", said)


def test_numbers_follow_the_language() -> None:
    values: dict[str, str | int | float | date] = {"chars": 500000, "limit": 400000, "over": 100000}
    assert "500,000" in catalogue("en").say("error-question-too-long", **values)


def test_an_error_shows_nothing_that_its_sentence_does_not_say() -> None:
    """A value that slipped in by mistake is in neither of the forms that logs print."""
    error = errors.ServerKeyError(url="http://h/v1", key="sk-secret")
    assert "sk-secret" not in str(error)
    assert "sk-secret" not in repr(error)
    assert "sk-secret" not in str(error.args)


def test_a_reason_that_looks_like_markup_is_said_as_it_is() -> None:
    said = str(errors.NotAllowedError(reason="{ $url } <b>%s</b>"))
    assert "{ $url } <b>%s</b>" in said
