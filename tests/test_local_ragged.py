"""One pass over several answers comes to the same as a pass over each, whatever the architecture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from llm.errors import ModelError
from llm.local_backend import LocalBackend
from llm.local_batch_start import batch_for
from llm.local_loader import LoadedModel
from llm.local_ragged import (
    KeyValues,
    NotBatchableError,
    Part,
    RaggedModel,
    register_attention,
)
from tests.local_answers import ask, model_of, read

pytest_plugins = "tests.local_fixtures"

VOCABULARY = 300
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": 0,
}
SLIDING = {"sliding_window": 16}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
KINDS: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Qwen2": {},
    "Qwen3": {},
    "Qwen3Moe": EXPERTS,
    "Mistral": SLIDING,
    "Gemma3": SLIDING,
    "Phi3": {},
    "Olmo2": {},
    "SmolLM3": {},
    "GPTNeoX": {},
    "Granite": {},
}


def make(kind: str, **more: Any) -> Any:
    name = f"{kind}TextConfig" if hasattr(transformers, f"{kind}TextConfig") else f"{kind}Config"
    config = getattr(transformers, name)(**SMALL, **more)
    if kind == "Gemma3":
        assert set(config.layer_types) == {"sliding_attention", "full_attention"} or (
            config.num_hidden_layers < 6
        )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return model.eval()


def texts(*lengths: int) -> list[list[int]]:
    return [
        [(11 * length + 7 * n * n + n) % (VOCABULARY - 1) + 1 for n in range(length)]
        for length in lengths
    ]


@torch.no_grad()
def apart(model: Any, text: list[int]) -> Any:
    """The logits after each of the text's tokens, (T, V)."""
    return model(input_ids=torch.tensor([text])).logits[0].float()


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_prompts_in_pieces_and_answers_beside_them_come_to_the_same(kind: str) -> None:
    model = make(kind, **KINDS[kind])
    ragged = RaggedModel(model, "cpu")
    written = texts(70, 45, 33, 5)
    expected = [apart(model, text) for text in written]
    memories = [KeyValues() for _ in written]
    # In each pass every text has its next piece, of a length of its own: long ones, as of a
    # prompt, and single ones, as of an answer, longer together than the sliding window.
    pieces = [[30, 1, 20, 1, 18], [1, 1, 1, 41, 1], [20, 10, 1, 1, 1], [1, 1, 1, 1, 1]]
    for turn in range(5):
        parts = []
        for memory, text, lengths in zip(memories, written, pieces, strict=True):
            memory.capacity = max(memory.capacity, memory.length + lengths[turn] + turn)
            parts.append(Part(memory, text[memory.length : memory.length + lengths[turn]]))
        wanted = [0, 1, 2, 3] if turn % 2 else [3, 1]
        logits = ragged.logits(parts, wanted)
        for part in parts:
            part.memory.length += len(part.ids)
        for row, number in zip(logits, wanted, strict=True):
            place = memories[number].length - 1
            assert torch.allclose(row, expected[number][place], atol=2e-4), (turn, number)


@torch.no_grad()
def test_a_pass_that_failed_is_repeated_as_if_it_had_never_been() -> None:
    model = make("Llama")
    ragged = RaggedModel(model, "cpu")
    text, other = texts(20, 30)
    memory = KeyValues()
    memory.capacity = 20
    ragged.logits([Part(memory, text[:10])], [0])
    memory.length = 10
    hook = model.model.layers[2].register_forward_pre_hook(lambda *_: {}["broken"])
    with pytest.raises(KeyError):
        ragged.logits([Part(memory, other[:5])], [0])
    hook.remove()
    again = ragged.logits([Part(memory, text[10:])], [0])
    assert torch.allclose(again[0], apart(model, text)[-1], atol=1e-5)


@torch.no_grad()
def test_the_model_by_itself_answers_as_before() -> None:
    model = make("Llama")
    (text,) = texts(20)
    before = apart(model, text)
    memory = KeyValues()
    memory.capacity = 20
    RaggedModel(model, "cpu").logits([Part(memory, text)], [0])
    assert torch.equal(apart(model, text), before)


@torch.no_grad()
def test_whoever_takes_the_attentions_place_makes_an_error_and_no_mixture(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    model = make("Llama")
    ragged = RaggedModel(model, "cpu")
    written = texts(20, 30)
    memories = [KeyValues() for _ in written]
    for memory in memories:
        memory.capacity = 30
    parts = [Part(memory, text) for memory, text in zip(memories, written, strict=True)]
    transformers.AttentionInterface.register("sdpa", sdpa_attention_forward)
    try:
        with pytest.raises(RuntimeError, match="place"):
            ragged.logits(parts, [0, 1])
    finally:
        register_attention()
    # A model that is loaded meanwhile takes nobody's place.
    model_of(make_backend(tiny_folder, batching="off"))
    for row, text in zip(ragged.logits(parts, [0, 1]), written, strict=True):
        assert torch.allclose(row, apart(model, text)[-1], atol=2e-4)


# What can't be batched


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}}),
        ("Llama", {"attn_implementation": "eager"}),
        ("Lfm2", {"layer_types": ["conv", "full_attention"] * 2}),
        ("T5", {}),
    ],
)
def test_a_model_whose_answers_would_change_each_other_is_refused(
    kind: str, more: dict[str, Any]
) -> None:
    if kind == "T5":
        model = transformers.AutoModelForSeq2SeqLM.from_config(
            transformers.T5Config(d_model=32, num_layers=1, num_heads=2, d_ff=32, vocab_size=50)
        )
    else:
        model = make(kind, **more)
    with pytest.raises(NotBatchableError):
        RaggedModel(model, "cpu")


def loaded(model: Any) -> LoadedModel:
    return LoadedModel("tiny", model, None, "cpu", 256, (0,))


def test_trying_it_out_finds_what_comes_to_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = make("Llama")
    assert batch_for(loaded(model), 4) is not None

    class Forgetful(KeyValues):
        """Has only what is new."""

        def write(self, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
            count = keys.shape[2]
            return tuple(one[:, :, -count:] for one in super().write(layer, keys, values))  # type: ignore[return-value]

    monkeypatch.setattr("llm.local_batch_start.KeyValues", Forgetful)
    assert batch_for(loaded(model), 4) is None


def test_a_model_that_breaks_at_it_is_answered_one_by_one(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_folder, attn_implementation="eager")
    model_of(backend)
    assert not backend.status().batched
    assert backend.slots == 2
    assert read(backend, ask(max_tokens=3))[1].reason == "length"


def test_where_batching_is_demanded_such_a_model_is_refused(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_folder, attn_implementation="eager", batching="on")
    with pytest.raises(ModelError) as caught:
        read(backend, ask(max_tokens=3))
    assert "STEADY_CHAT_BATCHING" in str(caught.value)


def test_the_number_of_answers_at_once_is_the_persons_where_set(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_folder, slots=3)
    assert backend.slots == 3
    model_of(backend)
    assert backend.slots == 3
    assert backend._loaded is not None
    assert backend._loaded.batch is not None
    assert backend._loaded.batch.size == 3
