"""`/v1/embeddings`, and the real models behind the API."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import openai
import pytest

# Before a backend's own thread does; see tests/local_fixtures.py.
import transformers  # noqa: F401

from api.embeddings import Embeddings
from api.models import OfferedModel
from llm.embedding import EmbeddingModel
from llm.errors import ModelDownloadError
from llm.local_backend import LocalBackend, LocalOptions
from llm.local_embedding import LocalEmbedder
from llm.minilm import NAME, fetch_minilm
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from llm.types import CancelToken
from tests.api_server import BEARER, PATIENCE_S, RawStream, chat, limits, serving, wait_until
from tests.model_data import model_data_dir

if TYPE_CHECKING:
    from llm.embedding import Vectors


class Counter:
    """Counts a text's letters, vowels and digits. Small, but an embedding all the same."""

    name = "counter@1"

    def reads(self, text: str) -> bool:
        return True

    def embed(self, texts: Sequence[str]) -> Vectors:
        def counts(text: str) -> list[float]:
            return [len(text), sum(c in "aeiou" for c in text), sum(c.isdigit() for c in text)]

        rows = np.array([counts(text) for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def close(self) -> None:
        pass


def scripted() -> ScriptedBackend:
    return ScriptedBackend(Script("Yes."))


def test_texts_get_their_vectors_in_either_spelling() -> None:
    model = EmbeddingModel("counter", lambda cancel: Counter())
    assert model.wait(PATIENCE_S) is not None
    texts = ["one", "two 2", "three 333"]
    with serving(scripted(), embeddings=Embeddings("counter", model)) as server:
        assert [each.id for each in server.openai.models.list()] == ["scripted", "counter"]
        usual = server.openai.embeddings.create(model="counter", input=texts)
        as_floats = server.openai.embeddings.create(
            model="counter", input=texts, encoding_format="float"
        )
        raw = server.http.post(
            "/v1/embeddings",
            json={"model": "counter", "input": "one", "encoding_format": "base64"},
            headers=BEARER,
        ).json()
    expected = Counter().embed(texts)
    for reply in (usual, as_floats):
        assert [each.index for each in reply.data] == [0, 1, 2]
        assert np.allclose([each.embedding for each in reply.data], expected)
    told = np.frombuffer(base64.b64decode(raw["data"][0]["embedding"]), dtype="<f4")
    assert np.allclose(told, expected[0])


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"input": "a"}, "missing_parameter", "model"),
        ({"model": "counter"}, "missing_parameter", "input"),
        ({"model": "counter", "input": []}, "invalid_value", "input"),
        ({"model": "counter", "input": ["a", " "]}, "invalid_value", "input"),
        ({"model": "counter", "input": [[1, 2]]}, "invalid_value", "input"),
        ({"model": "counter", "input": ["a"] * 257}, "invalid_value", "input"),
        ({"model": "counter", "input": "a", "dimensions": 3}, "invalid_value", "dimensions"),
        ({"model": "counter", "input": "a", "encoding_format": "hex"}, None, "encoding_format"),
        ({"model": "counter", "input": "a", "odd": 1}, "unknown_parameter", "odd"),
        ({"model": "scripted", "input": "a"}, "model_not_found", "model"),
    ],
)
def test_what_cant_be_embedded_is_refused(
    body: dict[str, object], code: str | None, param: str
) -> None:
    model = EmbeddingModel("counter", lambda cancel: Counter())
    with serving(scripted(), embeddings=Embeddings("counter", model)) as server:
        reply = server.http.post("/v1/embeddings", json=body, headers=BEARER)
    error = reply.json()["error"]
    assert reply.status_code in (400, 404)
    assert error["param"] == param
    assert code in (None, error["code"])


def test_a_model_that_isnt_there_yet_says_when_to_come_again() -> None:
    go_on = threading.Event()

    def load(cancel: CancelToken) -> Counter:
        go_on.wait(PATIENCE_S)
        return Counter()

    model = EmbeddingModel("counter", load)
    with serving(scripted(), embeddings=Embeddings("counter", model)) as server:
        body = {"model": "counter", "input": "a"}
        reply = server.http.post("/v1/embeddings", json=body, headers=BEARER)
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "embeddings_not_ready")
        assert int(reply.headers["Retry-After"]) > 0
        go_on.set()
        assert model.wait(PATIENCE_S) is not None
        assert server.http.post("/v1/embeddings", json=body, headers=BEARER).status_code == 200


class Held(Counter):
    """Computes only when it is let."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.times = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.times += 1
        self.begun.release()
        assert self.go_on.wait(PATIENCE_S)
        return super().embed(texts)


@pytest.fixture
def held() -> Iterator[Held]:
    embedder = Held()
    yield embedder
    embedder.go_on.set()


def offering(embedder: Counter) -> Embeddings:
    model = EmbeddingModel("counter", lambda cancel: embedder)
    assert model.wait(PATIENCE_S) is not None
    return Embeddings("counter", model)


ONE = {"model": "counter", "input": "one"}


def test_who_waits_too_long_for_vectors_is_told_so(held: Held) -> None:
    with serving(scripted(), embeddings=offering(held), limits=limits(time_s=0.2)) as server:
        first = RawStream(server, "/v1/embeddings", ONE)
        assert held.begun.acquire(timeout=PATIENCE_S)
        reply = server.http.post("/v1/embeddings", json=ONE, headers=BEARER)
        assert (reply.status_code, reply.json()["error"]["code"]) == (504, "time_limit")
        held.go_on.set()
        first.close()
    assert held.times == 1, "nobody waits for it any more"


def test_a_server_that_stops_computes_no_more_vectors(held: Held) -> None:
    with serving(scripted(), embeddings=offering(held)) as server:
        first = RawStream(server, "/v1/embeddings", ONE)
        assert held.begun.acquire(timeout=PATIENCE_S)
        second = RawStream(server, "/v1/embeddings", ONE)
        waiting = server.service.embeddings
        assert waiting is not None
        wait_until(lambda: waiting._waiting == 2, "the line")
        server.server.should_exit = True
        held.go_on.set()
        first.read_until(b'"usage"')
        second.read_until(b"shutting_down")
        for stream in (first, second):
            stream.close()
    assert held.times == 1


def test_a_model_that_cant_be_had_says_why() -> None:
    def load(cancel: CancelToken) -> Counter:
        raise ModelDownloadError(model="counter")

    model = EmbeddingModel("counter", load)
    model.wait(PATIENCE_S)
    with serving(scripted(), embeddings=Embeddings("counter", model)) as server:
        body = {"model": "counter", "input": "a"}
        error = server.http.post("/v1/embeddings", json=body, headers=BEARER).json()["error"]
    assert error["code"] == "model_not_ready"
    assert "counter" in error["message"]


def test_without_a_model_there_are_no_embeddings() -> None:
    with serving(scripted()) as server, pytest.raises(openai.NotFoundError):
        server.openai.embeddings.create(model="any", input="a")


@pytest.mark.model
def test_the_real_models_answer_and_embed() -> None:
    folder = fetch_minilm(model_data_dir() / "embeddings", CancelToken())
    embedding = EmbeddingModel(NAME, lambda cancel: LocalEmbedder(folder, NAME))
    assert embedding.wait(120) is not None
    local = LocalBackend(LocalOptions(model_data_dir()))
    offered = (OfferedModel("local", name="SmolLM2-135M-Instruct"),)
    with serving(
        {"local": local}, offered=lambda: offered, embeddings=Embeddings(NAME, embedding)
    ) as server:
        client = server.openai.with_options(timeout=300)
        chunks = client.chat.completions.create(
            **{
                **chat("What is the capital of France?", max_tokens=12, temperature=0),
                "model": "SmolLM2-135M-Instruct",
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        )
        text, usage = "", None
        for chunk in chunks:
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
            usage = chunk.usage or usage
        assert "Paris" in text
        assert usage is not None
        assert usage.completion_tokens <= 12
        two = client.embeddings.create(model=NAME, input=["How do I boil an egg?", "Egg boiling?"])
    one, other = (np.array(each.embedding) for each in two.data)
    assert one.shape == (384,)
    assert one @ other > 0.5
    embedding.close()
