"""A local model goes on with an answer that was cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llm.local_backend import LocalBackend, LocalOptions
from llm.local_generation import encode
from llm.types import CancelToken, Delta, Finish, GenerationRequest, Message, SamplingParams
from tests.local_answers import Dictation, ask, begun, model_of, read
from tests.model_data import model_data_dir
from tests.tiny_model import CHAT_TEMPLATE, make_tiny_model

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")

OPENED = CHAT_TEMPLATE.replace("assistant\n' }}", "assistant\n<think>\n' }}")
TRIMS = CHAT_TEMPLATE.replace("message['content']", "message['content'] | trim")
# As Qwen3's: a thought stands before an answer that is shown to the model, an empty one too.
WITH_THOUGHT = CHAT_TEMPLATE.replace(
    "+ message['content']",
    "+ ('<think>\n\n</think>\n\n' if message['role'] == 'assistant' else '') + message['content']",
)
BLIND = "{% for message in messages %}{% if message['role'] == 'user' %}" + CHAT_TEMPLATE.replace(
    "{% for message in messages %}", ""
).replace("{% endfor %}", "{% endif %}{% endfor %}")
TEMPLATES = {
    "plain": CHAT_TEMPLATE,
    "opens a thought": OPENED,
    "trims": TRIMS,
    "with a thought": WITH_THOUGHT,
    "shows no answer": BLIND,
}
ENDS = [
    "word",
    "wor",
    "space ",
    "lines\n\n",
    "    ",
    "tab\t",
    "你好",
    "🙂",
    "<think>",
    "</think>",
    " ",
]
Make = Callable[[str], LocalBackend]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[LocalBackend] = []

    def make(template: str) -> LocalBackend:
        folder = make_tiny_model(tmp_path / f"model-{len(made)}", chat_template=template)
        made.append(LocalBackend(LocalOptions(tmp_path, str(folder))))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


def go_on(text: str, **params: int) -> GenerationRequest:
    messages = (Message("user", "Hello"), Message("assistant", text))
    return GenerationRequest(messages, SamplingParams(temperature=0, **params))


def prompt_of(backend: LocalBackend, request: GenerationRequest) -> str:
    model_of(backend)
    assert backend._loaded is not None
    ids = encode(backend._loaded, request)["input_ids"][0]
    assert backend.count_tokens(request, CancelToken()) == len(ids)
    return str(backend._loaded.tokenizer.decode(ids))


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_prompt_ends_with_the_text_to_its_last_character(make: Make, template: str) -> None:
    backend = make(TEMPLATES[template])
    for end in ENDS:
        prompt = prompt_of(backend, go_on(f"So it is {end}"))
        assert prompt.endswith(f"So it is {end}")
        assert prompt.count("So it is") == 1
        assert prompt.count("<|im_start|>assistant") == 1


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_comes_next_is_text_tags_and_all(make: Make, template: str) -> None:
    backend = make(TEMPLATES[template])
    for end in ENDS:
        for said in ("go on", " go on", "\n</think>\n 42", "<think>hm", "你"):
            Dictation(backend, said)
            *deltas, finish = begun(backend, go_on(f"So it is {end}"))
            assert isinstance(finish, Finish)
            assert {d.kind for d in deltas if isinstance(d, Delta)} == {"text"}
            assert "".join(d.text for d in deltas if isinstance(d, Delta)) == said


def test_an_answer_without_a_word_yet_may_begin_with_a_thought(make: Make) -> None:
    backend = make(CHAT_TEMPLATE)
    Dictation(backend, "<think>hm</think>42")
    *deltas, _ = begun(backend, go_on(""))
    kinds = [d.kind for d in deltas if isinstance(d, Delta)]
    assert kinds == sorted(kinds)
    assert set(kinds) == {"reasoning", "text"}


@pytest.mark.model
@pytest.mark.parametrize("tokens", [5, 9, 16])
def test_the_embedded_model_goes_on_as_if_it_had_not_been_cut(
    embedded: LocalBackend, tokens: int
) -> None:
    """For another question it may not: in bfloat16 two tokens can be as likely as each other, and
    some texts are read in other tokens than they were written in (":" and "\\n\\n" as one)."""
    question = "Tell me a long story about a lighthouse."
    whole, _ = read(embedded, ask(question, max_tokens=24))
    start, _ = read(embedded, ask(question, max_tokens=tokens))
    messages = (Message("user", question), Message("assistant", start))
    params = SamplingParams(temperature=0, max_tokens=24 - tokens)
    rest, finish = read(embedded, GenerationRequest(messages, params))
    assert start + rest == whole
    assert rest.startswith(" ")
    assert finish.reason == "length"


@pytest.fixture(scope="module")
def embedded() -> Iterator[LocalBackend]:
    backend = LocalBackend(LocalOptions(model_data_dir()))
    yield backend
    backend.close()
