from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llm.errors import LLMError, OutOfMemoryError
from llm.local_backend import LocalBackend, LocalOptions
from llm.local_streamer import reasoning_tags
from llm.types import Delta, Finish, Notice
from tests.local_answers import Dictation, Trouble, ask, begun, model_of
from tests.tiny_model import CHAT_TEMPLATE, make_tiny_model, make_tiny_tokenizer

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")

OPENED = CHAT_TEMPLATE.replace("assistant\n' }}", "assistant\n<think>\n' }}")
HARMONY = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>"]
Make = Callable[..., LocalBackend]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[LocalBackend] = []

    def make(template: str = CHAT_TEMPLATE, special: list[str] | None = None) -> LocalBackend:
        folder = make_tiny_model(
            tmp_path / f"model-{len(made)}", chat_template=template, special_tokens=special or []
        )
        made.append(LocalBackend(LocalOptions(tmp_path, str(folder))))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


def dictated(backend: LocalBackend, text: str) -> tuple[str, str]:
    """The reasoning and the text of an answer that comes in these tokens."""
    Dictation(backend, text)
    *deltas, finish = begun(backend, ask(max_tokens=200))
    assert isinstance(finish, Finish)
    assert finish.reason == "stop"
    said = {"reasoning": "", "text": ""}
    for delta in deltas:
        assert isinstance(delta, Delta)
        assert delta.text
        said[delta.kind] += delta.text
    return said["reasoning"], said["text"]


def test_tags_in_the_answer_are_read(make: Make) -> None:
    backend = make()
    assert dictated(backend, "<think>\nhm\n</think>\n\n你好🙂") == ("\nhm\n", "\n\n你好🙂")
    assert dictated(backend, "<think>\nhm") == ("\nhm", "")
    assert dictated(backend, "No <think> here") == ("", "No <think> here")


def test_tags_that_are_special_tokens_are_read_too(make: Make) -> None:
    backend = make(special=["[THINK]", "[/THINK]"])
    assert dictated(backend, "[THINK]hm, 你好[/THINK] 42") == ("hm, 你好", " 42")
    backend = make(special=HARMONY)
    said = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>42"
    assert dictated(backend, said) == ("hm", "42")


def test_a_thought_that_the_template_opens_is_one_from_the_first_token(make: Make) -> None:
    backend = make(OPENED)
    assert dictated(backend, "hm\n</think>\n\n42") == ("hm\n", "\n\n42")
    assert dictated(backend, "hm, it goes on") == ("hm, it goes on", "")
    backend = make(OPENED, special=["<think>", "</think>"])
    assert dictated(backend, "hm</think>42") == ("hm", "42")


def test_what_was_held_back_is_said_before_a_failure(make: Make) -> None:
    backend = make()
    model = model_of(backend)
    Dictation(backend, "</thi")
    Trouble(model, MemoryError(), at_token=5)
    said: list[Delta | Notice | Finish] = []
    with pytest.raises(LLMError) as caught:
        said.extend(begun(backend, ask(max_tokens=50)))
    assert isinstance(caught.value, OutOfMemoryError)
    assert "</th".startswith("".join(i.text for i in said if isinstance(i, Delta)))
    assert said


def test_a_token_that_ends_the_answer_is_never_shown() -> None:
    tokenizer = make_tiny_tokenizer(special_tokens=HARMONY)
    shown = reasoning_tags(tokenizer)
    assert sorted(shown.values()) == sorted(HARMONY)
    end = tokenizer.convert_tokens_to_ids("<|end|>")
    assert end in shown
    assert end not in reasoning_tags(tokenizer, [end])
    assert reasoning_tags(make_tiny_tokenizer()) == {}
