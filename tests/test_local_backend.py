from __future__ import annotations

import gc
import json
import shutil
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from llm.errors import (
    ContextOverflowError,
    InternalError,
    InvalidRequestError,
    LLMError,
    MissingPackageError,
    ModelDownloadError,
    ModelError,
    ModelNotFoundError,
    NoChatTemplateError,
    NotAModelError,
    OutOfMemoryError,
    RemoteCodeError,
    ShuttingDownError,
)
from llm.local_backend import LocalBackend, LocalOptions
from llm.local_errors import generate_error, load_error
from llm.local_streamer import REPLACEMENT
from llm.types import (
    CancelToken,
    Delta,
    Finish,
    GenerationRequest,
    Message,
    SamplingParams,
)
from tests.model_data import model_data_dir
from tests.tiny_model import CHAT_TEMPLATE, WINDOW_TOKENS, make_tiny_model

TIMEOUT_S = 60


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("models") / "Tiny-Instruct")


@pytest.fixture(scope="module")
def shared(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBackend]:
    """One loaded backend for the tests that leave it as it was."""
    backend = LocalBackend(LocalOptions(tmp_path_factory.mktemp("data"), str(tiny_folder)))
    yield backend
    backend.close()


@pytest.fixture
def make_backend(tmp_path: Path) -> Iterator[Callable[..., LocalBackend]]:
    made: list[LocalBackend] = []

    def make(model: Path | str, **options: Any) -> LocalBackend:
        made.append(LocalBackend(LocalOptions(tmp_path / "data", str(model), **options)))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture(autouse=True)
def _no_generating_thread_is_left() -> Iterator[None]:
    yield
    assert generating() == []


def generating() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("generate-")]


def ask(question: str = "Hello", **params: Any) -> GenerationRequest:
    return GenerationRequest((Message("user", question),), SamplingParams(**params))


def read(backend: LocalBackend, request: GenerationRequest) -> tuple[str, Finish]:
    *deltas, finish = backend.stream(request, CancelToken())
    assert all(isinstance(delta, Delta) and delta.text for delta in deltas)
    assert isinstance(finish, Finish)
    return "".join(delta.text for delta in deltas if isinstance(delta, Delta)), finish


def model_of(backend: LocalBackend) -> Any:
    backend.prepare()
    read(backend, ask(max_tokens=1))
    assert backend._loaded is not None
    return backend._loaded.model


class Trouble:
    """Raises inside `generate()` at the n-th token of the next answer."""

    def __init__(self, model: Any, error: BaseException, at_token: int) -> None:
        self._error = error
        self._left = at_token
        self._hook = model.register_forward_pre_hook(self._step)

    def _step(self, *_: Any) -> None:
        self._left -= 1
        if self._left == 0:
            self._hook.remove()
            raise self._error


class Gate:
    """Holds every forward pass from the n-th on until opened."""

    def __init__(self, model: Any, at_token: int = 1) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()
        self._left = at_token
        self.hook = model.register_forward_pre_hook(self._step)

    def _step(self, *_: Any) -> None:
        self._left -= 1
        if self._left <= 0:
            self.reached.set()
            assert self.open.wait(TIMEOUT_S)


# Answering


def test_an_answer_is_deltas_and_one_finish_with_exact_counts(shared: LocalBackend) -> None:
    request = ask(max_tokens=7, temperature=0)
    text, finish = read(shared, request)
    assert text
    assert finish.reason == "length"
    assert finish.usage.completion_tokens == 7
    assert finish.usage.prompt_tokens == shared.count_tokens(request.messages)


def test_status_says_ready_and_the_models_name(shared: LocalBackend) -> None:
    read(shared, ask(max_tokens=1))
    status = shared.status()
    assert (status.phase, status.model, status.error) == ("ready", "Tiny-Instruct", None)
    assert (shared.name, shared.slots, shared.context_tokens) == ("local", 2, WINDOW_TOKENS)


def test_greedy_is_what_the_bare_model_says(shared: LocalBackend) -> None:
    model = model_of(shared)
    tokenizer = shared._loaded.tokenizer  # type: ignore[union-attr]
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hello"}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )
    out = model.generate(**inputs, max_new_tokens=60, do_sample=False)
    expected = tokenizer.decode(out[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    text, _ = read(shared, ask(max_tokens=60, temperature=0))
    assert text == expected.replace(REPLACEMENT, "")


def test_random_nonsense_never_shows_a_replacement_mark(shared: LocalBackend) -> None:
    texts = [read(shared, ask(max_tokens=80, temperature=2, seed=seed))[0] for seed in range(8)]
    assert len(set(texts)) == 8
    assert REPLACEMENT not in "".join(texts)


def test_an_answer_that_ends_by_itself_finishes_with_stop(shared: LocalBackend) -> None:
    model_of(shared)
    loaded = shared._loaded
    assert loaded is not None
    _, finish = read(shared, ask(max_tokens=30, temperature=0))
    first = None
    for seed in range(200):
        _, finish = read(shared, ask(max_tokens=400, temperature=2, seed=seed))
        if finish.reason == "stop":
            first = finish
            break
    assert first is not None
    assert first.usage.completion_tokens is not None
    assert first.usage.completion_tokens < 400


def test_the_models_own_generation_config_is_never_changed(shared: LocalBackend) -> None:
    model = model_of(shared)
    before = model.generation_config.to_json_string()
    read(shared, ask(max_tokens=3, temperature=1.3, top_p=0.5, seed=1))
    assert model.generation_config.to_json_string() == before


# Seeds


def test_a_seed_repeats_the_answer_and_another_seed_does_not(shared: LocalBackend) -> None:
    first, _ = read(shared, ask(max_tokens=40, seed=5))
    assert read(shared, ask(max_tokens=40, seed=5))[0] == first
    assert read(shared, ask(max_tokens=40, seed=6))[0] != first


def test_without_a_seed_answers_differ_and_torchs_own_generator_is_untouched(
    shared: LocalBackend,
) -> None:
    model_of(shared)
    state = torch.random.get_rng_state()
    first, _ = read(shared, ask(max_tokens=40))
    assert read(shared, ask(max_tokens=40))[0] != first
    assert torch.equal(torch.random.get_rng_state(), state)


def test_two_answers_at_once_are_what_each_would_be_alone(shared: LocalBackend) -> None:
    requests = [ask("Hello", max_tokens=120, seed=1), ask("你好", max_tokens=120, seed=2)]
    alone = [read(shared, request)[0] for request in requests]
    together: dict[int, str] = {}
    barrier = threading.Barrier(2)

    def run(number: int) -> None:
        barrier.wait(TIMEOUT_S)
        together[number] = read(shared, requests[number])[0]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert [together[0], together[1]] == alone


def test_gumbel_noise_samples_the_distribution() -> None:
    from llm.local_sampling import GumbelSampler

    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05, 0.0])
    scores = probabilities.log().expand(40_000, 5)
    chosen = GumbelSampler(3)(None, scores).argmax(dim=-1)
    shares = torch.bincount(chosen, minlength=5) / len(chosen)
    assert shares[4] == 0
    assert torch.allclose(shares, probabilities, atol=0.01)


def test_top_p_keeps_only_the_nucleus(shared: LocalBackend) -> None:
    greedy, _ = read(shared, ask(max_tokens=30, temperature=0))
    assert read(shared, ask(max_tokens=30, temperature=2, top_p=1e-6, seed=1))[0] == greedy
    assert read(shared, ask(max_tokens=30, temperature=2, top_p=1.0, seed=1))[0] != greedy


# The window


def test_a_prompt_that_leaves_no_room_is_refused_with_the_numbers(shared: LocalBackend) -> None:
    request = ask("x" * 600)
    tokens = model_of(shared) and shared.count_tokens(request.messages)
    assert tokens is not None
    with pytest.raises(ContextOverflowError) as caught:
        read(shared, request)
    assert caught.value.values == {
        "prompt_tokens": tokens,
        "limit": WINDOW_TOKENS,
        "over": tokens + 1 - WINDOW_TOKENS,
    }


def test_max_tokens_are_fitted_to_the_room_that_is_left(shared: LocalBackend) -> None:
    request = ask("x" * 460, max_tokens=1_000_000, temperature=0)
    model_of(shared)
    prompt = shared.count_tokens(request.messages)
    assert prompt is not None
    _, finish = read(shared, request)
    assert finish.reason == "length"
    assert finish.usage.completion_tokens == WINDOW_TOKENS - prompt


def test_the_last_token_that_fits_is_used(shared: LocalBackend) -> None:
    model_of(shared)
    bare = shared.count_tokens((Message("user", ""),))
    assert bare is not None
    fits = "x" * (WINDOW_TOKENS - 1 - bare)
    assert read(shared, ask(fits))[1].usage.completion_tokens == 1
    with pytest.raises(ContextOverflowError):
        read(shared, ask(fits + "x"))


# Stopping


def test_cancelled_before_it_begins_is_one_abort(shared: LocalBackend) -> None:
    model_of(shared)
    cancel = CancelToken()
    cancel.cancel()
    assert list(shared.stream(ask(), cancel)) == [Finish("abort")]


def test_cancelled_in_mid_answer_ends_within_one_token(shared: LocalBackend) -> None:
    cancel = CancelToken()
    items = shared.stream(ask(max_tokens=400), cancel)
    first = next(items)
    assert isinstance(first, Delta)
    cancel.cancel()
    cancel.cancel()
    rest = list(items)
    assert len(rest) == 1
    finish = rest[0]
    assert isinstance(finish, Finish)
    assert finish.reason == "abort"
    assert finish.usage.completion_tokens is not None
    assert 0 < finish.usage.completion_tokens < 400
    assert generating() == []


def test_cancelled_while_the_prompt_is_read_ends_there(shared: LocalBackend) -> None:
    model = model_of(shared)
    gate = Gate(model)
    cancel = CancelToken()
    got: list[Delta | Finish] = []
    reader = threading.Thread(target=lambda: got.extend(shared.stream(ask(), cancel)))
    reader.start()
    assert gate.reached.wait(TIMEOUT_S)
    cancel.cancel()
    gate.open.set()
    reader.join(TIMEOUT_S)
    gate.hook.remove()
    assert [item.reason for item in got if isinstance(item, Finish)] == ["abort"]
    assert len(got) == 1
    # It ended between two layers: no token was made.
    assert isinstance(got[0], Finish)
    assert got[0].usage.completion_tokens == 0


def test_cancelled_after_the_end_changes_nothing(shared: LocalBackend) -> None:
    cancel = CancelToken()
    *_, finish = shared.stream(ask(max_tokens=3, temperature=0), cancel)
    cancel.cancel()
    assert isinstance(finish, Finish)
    assert finish.reason == "length"
    assert read(shared, ask(max_tokens=3))[1].usage.completion_tokens == 3


def test_a_closed_iterator_frees_its_thread(shared: LocalBackend) -> None:
    items = shared.stream(ask(max_tokens=400), CancelToken())
    next(items)
    assert len(generating()) == 1
    items.close()  # type: ignore[attr-defined]
    assert generating() == []


def test_a_dropped_iterator_frees_its_thread(shared: LocalBackend) -> None:
    items = shared.stream(ask(max_tokens=400), CancelToken())
    next(items)
    assert len(generating()) == 1
    del items
    assert generating() == []


def test_an_iterator_that_was_never_read_starts_nothing(shared: LocalBackend) -> None:
    items = shared.stream(ask(max_tokens=400), CancelToken())
    assert generating() == []
    del items


def test_stopping_one_answer_leaves_the_other_alone(shared: LocalBackend) -> None:
    request = ask("Hello", max_tokens=60, seed=4)
    alone, _ = read(shared, request)
    cancel = CancelToken()
    stopped = shared.stream(ask("World", max_tokens=400), cancel)
    next(stopped)
    other = shared.stream(request, CancelToken())
    first = next(other)
    cancel.cancel()
    assert [item.reason for item in stopped if isinstance(item, Finish)] == ["abort"]
    *rest, finish = other
    assert isinstance(finish, Finish)
    assert finish.reason == "length"
    assert "".join(d.text for d in [first, *rest] if isinstance(d, Delta)) == alone


# Trouble in mid-answer


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA error: out of memory"),
    ],
)
def test_out_of_memory_keeps_the_text_so_far_and_the_next_question_works(
    shared: LocalBackend, error: BaseException
) -> None:
    request = ask(max_tokens=40, temperature=0)
    whole, _ = read(shared, request)
    Trouble(model_of(shared), error, at_token=20)
    got: list[Delta | Finish] = []
    with pytest.raises(OutOfMemoryError) as caught:
        got.extend(shared.stream(request, CancelToken()))
    assert got
    assert whole.startswith("".join(item.text for item in got if isinstance(item, Delta)))
    assert not any(isinstance(item, Finish) for item in got)
    assert caught.value.values == {"model": "Tiny-Instruct"}
    assert read(shared, request)[0] == whole


def test_after_out_of_memory_nothing_holds_the_answers_memory(shared: LocalBackend) -> None:
    model = model_of(shared)
    caches: list[weakref.ref[Any]] = []

    def remember(_module: Any, _args: Any, kwargs: dict[str, Any]) -> None:
        if (cache := kwargs.get("cache")) is not None:
            caches.append(weakref.ref(cache))

    hook = model.register_forward_pre_hook(remember, with_kwargs=True)
    Trouble(model, MemoryError(), at_token=5)
    with pytest.raises(OutOfMemoryError) as caught:
        read(shared, ask(max_tokens=40))
    hook.remove()
    assert len(caches) >= 3
    assert [cache() for cache in caches] == [None] * len(caches)
    assert caught.value is not None  # the error is still held, the cache is not


def test_any_other_failure_is_told_by_its_kind_and_logged_without_the_conversation(
    shared: LocalBackend, caplog: pytest.LogCaptureFixture
) -> None:
    Trouble(model_of(shared), KeyError("my secret question"), at_token=3)
    with pytest.raises(InternalError) as caught:
        read(shared, ask("my secret question", max_tokens=10))
    assert caught.value.values == {"kind": "KeyError"}
    assert "secret" not in str(caught.value)
    assert "KeyError" in caplog.text
    assert "secret" not in caplog.text
    assert read(shared, ask(max_tokens=3))[1].reason == "length"


def test_a_template_that_refuses_is_a_request_that_cannot_be_answered(
    tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    template = "{{ raise_exception('System role not supported') }}"
    backend = make_backend(make_tiny_model(tmp_path / "m", chat_template=template))
    with pytest.raises(LLMError) as caught:
        read(backend, ask())
    assert "System role not supported" in str(caught.value)


# Getting ready


def test_preparing_twice_and_asking_meanwhile_loads_once(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    import llm.local_loader

    loads: list[str] = []
    load_model = llm.local_loader.load_model

    def counted(*args: Any) -> Any:
        loads.append("load")
        return load_model(*args)

    monkeypatch.setattr(llm.local_loader, "load_model", counted)
    backend = make_backend(tiny_folder)
    assert backend.status().phase == "idle"
    backend.prepare()
    assert backend.status().preparing
    answers: list[str] = []

    def run() -> None:
        backend.prepare()
        answers.append(read(backend, ask(max_tokens=5, temperature=0))[0])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert len(answers) == 4
    assert len(set(answers)) == 1
    assert loads == ["load"]


def test_waiting_for_the_model_can_be_cancelled(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    import llm.local_loader

    release = threading.Event()
    loading = threading.Event()
    load_model = llm.local_loader.load_model

    def slow(*args: Any) -> Any:
        loading.set()
        assert release.wait(TIMEOUT_S)
        return load_model(*args)

    monkeypatch.setattr(llm.local_loader, "load_model", slow)
    backend = make_backend(tiny_folder)
    cancel = CancelToken()
    got: list[Delta | Finish] = []
    reader = threading.Thread(target=lambda: got.extend(backend.stream(ask(), cancel)))
    reader.start()
    assert loading.wait(TIMEOUT_S)
    cancel.cancel()
    reader.join(TIMEOUT_S)
    assert got == [Finish("abort")]
    assert backend.status().preparing
    release.set()
    assert read(backend, ask(max_tokens=2))[1].reason == "length"


def test_a_failure_is_told_by_status_and_stream_and_can_be_mended(
    tiny_folder: Path, tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    folder = tmp_path / "later"
    backend = make_backend(folder)
    with pytest.raises(ModelNotFoundError):
        read(backend, ask())
    status = backend.status()
    assert status.phase == "failed"
    assert isinstance(status.error, ModelNotFoundError)
    shutil.copytree(tiny_folder, folder)
    assert read(backend, ask(max_tokens=2))[1].reason == "length"
    assert backend.status().ready
    assert backend.status().error is None


def broken(tiny_folder: Path, folder: Path, name: str, change: Callable[[Path], object]) -> Path:
    shutil.copytree(tiny_folder, folder)
    change(folder / name)
    return folder


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def cut_to_nothing(path: Path) -> None:
    path.write_bytes(b"")


def name_another_type(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_type": "no-such-type"}))


def name_an_encoder(path: Path) -> None:
    path.write_text(json.dumps({"model_type": "t5", "architectures": ["T5Model"]}))


def double_the_size(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "hidden_size": 128}))


def add_a_layer(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_hidden_layers": 3}))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("model.safetensors", cut),
        ("model.safetensors", cut_to_nothing),
        ("config.json", name_another_type),
        ("config.json", name_an_encoder),
        ("config.json", double_the_size),
        ("config.json", add_a_layer),
        ("tokenizer.json", cut),
        ("tokenizer.json", Path.unlink),
    ],
)
def test_a_damaged_folder_is_told_as_no_model(
    tiny_folder: Path,
    tmp_path: Path,
    make_backend: Callable[..., LocalBackend],
    name: str,
    change: Callable[[Path], object],
) -> None:
    backend = make_backend(broken(tiny_folder, tmp_path / "m", name, change))
    with pytest.raises(NotAModelError) as caught:
        read(backend, ask())
    assert caught.value.values["model"] == str(tmp_path / "m")
    assert caught.value.values["reason"]


def test_a_base_model_without_chat_template_is_told_so(
    tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(make_tiny_model(tmp_path / "m", chat_template=None))
    with pytest.raises(NoChatTemplateError):
        read(backend, ask())


def test_a_model_that_brings_code_is_not_run_unless_allowed(
    tiny_folder: Path, tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    folder = tmp_path / "m"
    shutil.copytree(tiny_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "own-type",
        "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(RemoteCodeError):
        read(make_backend(folder), ask())
    assert not (tmp_path / "ran").exists()


def test_flash_attention_without_its_package_is_told_so(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_folder, attn_implementation="flash_attention_2")
    with pytest.raises(MissingPackageError) as caught:
        read(backend, ask())
    assert caught.value.values == {"package": "flash-attn"}


def test_a_gguf_file_cut_short_is_told_as_no_model_and_leaves_nothing(
    tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    file = tmp_path / "cut.gguf"
    file.write_bytes(b"GGUF\x03\0\0\0" + b"\x01" * 100)
    backend = make_backend(file)
    with pytest.raises(NotAModelError) as caught:
        read(backend, ask())
    assert caught.value.values["model"] == "cut.gguf"
    left = [path.name for path in (tmp_path / "data" / "models").iterdir()]
    assert [name for name in left if name != ".lock"] == []


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_options_of_attention_and_number_type_are_obeyed(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend], attention: str
) -> None:
    backend = make_backend(tiny_folder, attn_implementation=attention, dtype="float32")
    model = model_of(backend)
    assert model.config._attn_implementation == attention
    assert model.dtype == torch.float32


@pytest.mark.parametrize("quantization", ["8bit", "4bit"])
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_quantized_models_answer(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend], quantization: str
) -> None:
    backend = make_backend(tiny_folder, quantization=quantization)
    assert read(backend, ask(max_tokens=4))[1].usage.completion_tokens == 4


def test_threads_are_set_when_asked_for(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    before = torch.get_num_threads()
    try:
        backend = make_backend(tiny_folder, threads=1)
        seen: list[int] = []
        hook = model_of(backend).register_forward_pre_hook(
            lambda *_: seen.append(torch.get_num_threads())
        )
        read(backend, ask(max_tokens=2))
        hook.remove()
        assert seen == [1, 1]
    finally:
        torch.set_num_threads(before)


# Closing


def test_closing_stops_running_answers_and_refuses_new_ones(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_folder)
    items = backend.stream(ask(max_tokens=400), CancelToken())
    next(items)
    backend.close()
    assert [item.reason for item in items if isinstance(item, Finish)] == ["abort"]
    with pytest.raises(ShuttingDownError):
        read(backend, ask())


def test_closing_frees_the_model(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_folder)
    model = weakref.ref(model_of(backend))
    backend.close()
    gc.collect()
    assert model() is None


# What the vendors raise


class GatedRepoError(OSError):
    """As the hub's."""


class LocalEntryNotFoundError(FileNotFoundError):
    """As the hub's."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (GatedRepoError("403 Client Error"), ModelError),
        (LocalEntryNotFoundError("offline"), ModelDownloadError),
        (OSError("x/y is not a local folder and is not a valid model identifier"), ModelNotFoundError),
        (ImportError("Using `bitsandbytes` requires: pip install -U bitsandbytes"), MissingPackageError),
        (ModuleNotFoundError("No module named 'einops'", name="einops"), MissingPackageError),
        (torch.OutOfMemoryError("CUDA out of memory"), OutOfMemoryError),
        (ValueError("Some modules are dispatched on the CPU or the disk."), OutOfMemoryError),
        (NotImplementedError("odd"), ModelError),
    ],
)  # fmt: skip
def test_what_goes_wrong_while_loading_has_its_own_sentence(
    error: Exception, kind: type[LLMError]
) -> None:
    mapped = load_error(error, "owner/name")
    assert type(mapped) is kind
    assert str(mapped)


def test_an_error_of_the_tree_stays_what_it_is() -> None:
    error = InvalidRequestError(reason="no")
    assert generate_error(error, "m") is error
    assert load_error(error, "m") is error


def test_a_hub_that_cannot_be_reached_is_a_failed_download(
    make_backend: Callable[..., LocalBackend], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(ModelDownloadError):
        read(make_backend("nobody/nothing"), ask())


# GGUF files, small ones


@pytest.fixture(scope="session")
def tiny_gguf(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tiny_folder, tmp_path_factory.mktemp("gguf") / "Tiny.F32.gguf")


def write_tiny_gguf(folder: Path, file: Path) -> Path:
    """The tiny model as llama.cpp would keep it."""
    import gguf
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name("Tiny")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(10_000.0)
    vocab = {**tokenizer["model"]["vocab"]}
    words = sorted(vocab, key=lambda word: vocab[word])
    special = {token["content"] for token in tokenizer["added_tokens"]}
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in special else 1 for word in words])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(vocab["<|im_end|>"])
    writer.add_bos_token_id(vocab["<|im_start|>"])
    writer.add_pad_token_id(vocab["<|endoftext|>"])
    writer.add_chat_template(CHAT_TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, value in load_file(folder / "model.safetensors").items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            # llama.cpp keeps rotary pairs side by side.
            n = heads if "q_proj" in name else kv_heads
            rows, columns = value.shape
            value = (
                value.reshape(n, 2, rows // n // 2, columns).swapaxes(1, 2).reshape(rows, columns)
            )
        new = names.get_name(name, try_suffixes=(".weight",))
        writer.add_tensor(new, value.copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def models_of(tmp_path: Path) -> list[str]:
    folder = tmp_path / "data" / "models"
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_gguf_file_is_converted_once_and_answers_as_its_origin(
    tiny_gguf: Path,
    tiny_folder: Path,
    tmp_path: Path,
    make_backend: Callable[..., LocalBackend],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = ask(max_tokens=30, temperature=0)
    backend = make_backend(tiny_gguf)
    text, _ = read(backend, request)
    assert text == read(make_backend(tiny_folder, dtype="bfloat16"), request)[0]
    (folder,) = models_of(tmp_path)
    assert folder.startswith("Tiny.F32-")
    monkeypatch.setattr(
        "llm.local_source._convert", lambda *_: pytest.fail("it was converted again")
    )
    assert read(make_backend(tiny_gguf), request)[0] == text
    # A conversion that got damaged later is thrown away, so that the next try mends it.
    cut(tmp_path / "data" / "models" / folder / "model.safetensors")
    with pytest.raises(NotAModelError):
        read(make_backend(tiny_gguf), request)
    assert models_of(tmp_path) == []


def test_a_gguf_file_whose_weights_are_cut_is_told_as_no_model(
    tiny_gguf: Path, tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    file = tmp_path / "Cut.gguf"
    file.write_bytes(tiny_gguf.read_bytes()[:-50_000])
    with pytest.raises(NotAModelError):
        read(make_backend(file), ask())
    assert models_of(tmp_path) == []


def test_closing_ends_a_conversion_and_leaves_no_half_model(
    tiny_gguf: Path, tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_gguf)
    backend.prepare()
    models = tmp_path / "data" / "models"
    while not list(models.glob("*.part")):
        assert backend.status().phase != "failed"
    backend.close()
    for thread in threading.enumerate():
        if thread.name == "load-model":
            thread.join(TIMEOUT_S)
    assert all(name.endswith(".part") for name in models_of(tmp_path))
    # The next one clears what was left.
    assert read(make_backend(tiny_gguf), ask(max_tokens=1))[1].reason == "length"
    assert [name.startswith("Tiny.F32-") for name in models_of(tmp_path)] == [True]
    assert not list(models.glob("*.part"))


# The embedded model itself


@pytest.fixture(scope="session")
def embedded() -> Iterator[LocalBackend]:
    """The real model; what was fetched and converted is kept for the next run of the tests."""
    backend = LocalBackend(LocalOptions(model_data_dir()))
    yield backend
    backend.close()


@pytest.mark.model
def test_the_embedded_model_knows_the_capital_of_france(embedded: LocalBackend) -> None:
    question = "What is the capital of France?"
    text, finish = read(embedded, ask(question, max_tokens=40, temperature=0))
    assert "Paris" in text
    assert finish.reason == "stop"
    assert embedded.status().model == "SmolLM2-135M-Instruct"
    assert embedded.context_tokens == 8192


@pytest.mark.model
def test_the_embedded_model_streams_whole_characters(embedded: LocalBackend) -> None:
    request = ask("Repeat exactly: 你好，世界！🙂 👨‍👩‍👧 é ไทย", max_tokens=40, seed=3)
    pieces = [d.text for d in embedded.stream(request, CancelToken()) if isinstance(d, Delta)]
    assert len(pieces) > 1
    assert REPLACEMENT not in "".join(pieces)


@pytest.mark.model
def test_the_embedded_model_obeys_a_seed_beside_another_answer(embedded: LocalBackend) -> None:
    request = ask("Name three colours.", max_tokens=15, seed=11)
    alone, _ = read(embedded, request)
    beside = embedded.stream(ask("Tell me a story.", max_tokens=200), CancelToken())
    next(beside)
    assert read(embedded, replace(request, request_id="again"))[0] == alone
    beside.close()  # type: ignore[attr-defined]
