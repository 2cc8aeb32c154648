"""Weights that were small whole numbers are computed with as such, and no others are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from llm.gguf_header import Tensor
from llm.local_backend import LocalBackend
from llm.local_packed import GROUP, MOST_ROWS, PackedLinear, pack, pack_model
from llm.model_facts import _packed_bytes
from tests.local_answers import ask, model_of, read

pytest_plugins = "tests.local_fixtures"
pytestmark = [
    pytest.mark.usefixtures("no_generating_thread_is_left"),
    pytest.mark.skipif(
        torch.backends.cpu.get_cpu_capability() != "AVX512",
        reason="packed weights are for CPUs with AVX-512",
    ),
]

N, K = 96, 64


def four_bit(rows: int = N, columns: int = K) -> Any:
    """As llama.cpp dequantizes Q4_1: 16 steps from a group's least to its greatest."""
    torch.manual_seed(1)
    codes = torch.randint(0, 16, (rows, columns // GROUP, GROUP))
    codes[..., 0], codes[..., 1] = 0, 15
    scale = torch.rand(rows, columns // GROUP, 1) + 0.1
    least = -8 * scale * (1 + 0.2 * torch.randn_like(scale))
    return (codes * scale + least).view(rows, columns).bfloat16()


def eight_bit(rows: int = N, columns: int = K) -> Any:
    """As llama.cpp dequantizes Q8_0: whole numbers up to 127, to either side."""
    torch.manual_seed(2)
    numbers = torch.randn(rows, columns // GROUP, GROUP).mul(40).round().clamp(-127, 127)
    numbers[..., 0] = 127
    scale = torch.rand(rows, columns // GROUP, 1) + 0.1
    return (numbers * scale).view(rows, columns).bfloat16()


def unquantized() -> Any:
    torch.manual_seed(3)
    return torch.randn(N, K).bfloat16()


def linear(weight: Any, *, bias: bool = False) -> Any:
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias, dtype=torch.bfloat16)
    layer.weight.data = weight
    return layer


def packed(layer: Any) -> PackedLinear:
    found = pack(layer.weight)
    assert found is not None
    return PackedLinear(layer, found)


@pytest.mark.parametrize(("make", "planes"), [(four_bit, 1), (eight_bit, 2)])
def test_weights_that_were_whole_numbers_are_recognised(
    make: Callable[[], Any], planes: int
) -> None:
    found = pack(make())
    assert found is not None
    assert found.planes == planes


@pytest.mark.parametrize(("make", "kind"), [(four_bit, "Q4_1"), (eight_bit, "Q8_0")])
def test_what_packed_weights_take_is_told_from_the_files_head(
    make: Callable[[], Any], kind: str
) -> None:
    found = pack(make())
    assert found is not None
    told = _packed_bytes({"output.weight": Tensor((K, N), kind)})
    assert told == found.codes.nbytes + found.scales.nbytes


def test_other_weights_are_left_alone() -> None:
    assert pack(unquantized()) is None


@pytest.mark.parametrize("shape", [(N, 48), (40, K)])
def test_shapes_that_the_kernel_does_not_take_are_left_alone(shape: tuple[int, int]) -> None:
    assert pack(torch.zeros(shape, dtype=torch.bfloat16)) is None


@pytest.mark.parametrize("make", [four_bit, eight_bit])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [1, 2, MOST_ROWS, MOST_ROWS + 1, 40])
def test_the_product_is_as_near_to_the_exact_one_as_bf16s_own(
    make: Callable[[], Any], bias: bool, rows: int
) -> None:
    plain = linear(make(), bias=bias)
    states = torch.randn(2, rows, K).bfloat16()
    with torch.inference_mode():
        mine = packed(plain)(states)
        exact = torch.nn.functional.linear(
            states.float(), plain.weight.float(), plain.bias.float() if bias else None
        )
        off = (mine.float() - exact).norm() / exact.norm()
    assert mine.shape == (2, rows, N)
    assert mine.dtype == torch.bfloat16
    assert off < 0.005


def test_a_matrix_of_more_rows_than_are_packed_at_once_is_whole() -> None:
    plain = linear(four_bit(rows=1200 - 1200 % 16 + 16))
    states = torch.randn(1, K).bfloat16()
    with torch.inference_mode():
        exact = torch.nn.functional.linear(states.float(), plain.weight.float())
        assert (packed(plain)(states).float() - exact).norm() < 0.005 * exact.norm()


def test_a_group_of_zeros_is_zero() -> None:
    weight = four_bit()
    weight[:, :GROUP] = 0
    states = torch.zeros(1, K).bfloat16()
    states[:, :GROUP] = 1
    layer = packed(linear(weight))
    with torch.inference_mode():
        assert layer(states).abs().max() == 0


def test_a_model_is_packed_layer_by_layer_and_keeps_its_plain_weights(tiny_folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.bfloat16).eval()
    mlp = model.model.layers[0].mlp
    mlp.up_proj.weight.data = four_bit(*mlp.up_proj.weight.shape)
    mlp.down_proj.weight.data = eight_bit(*mlp.down_proj.weight.shape)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    ids = torch.tensor([[7]])
    with torch.inference_mode():
        plain = model(ids).logits.float()
        assert pack_model(model) == 2
        again = model(ids).logits.float()
    assert type(mlp.up_proj) is type(mlp.down_proj) is PackedLinear
    assert type(mlp.gate_proj) is torch.nn.Linear
    kept = model.state_dict()
    assert [name for name in before if not kept[name].equal(before[name])] == []
    assert (again - plain).norm() < 0.02 * plain.norm()
    assert pack_model(model) == 0, "a packed layer is not packed again"


def test_few_rows_take_one_thread_and_a_prompt_all(tiny_folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    before = torch.get_num_threads()
    model = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.bfloat16).eval()
    mlp = model.model.layers[0].mlp
    mlp.up_proj.weight.data = four_bit(*mlp.up_proj.weight.shape)
    torch.set_num_threads(2)
    try:
        pack_model(model)
        seen: list[int] = []
        mlp.up_proj.register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
        with torch.inference_mode():
            for rows in (1, MOST_ROWS, MOST_ROWS + 1, 1):
                model(input_ids=torch.full((1, rows), 7))
                model(torch.full((rows, 1), 7))
        assert seen == [1, 1, 1, 1, 2, 2, 1, 1]
    finally:
        torch.set_num_threads(before)


def test_large_matrices_take_all_threads_whether_they_are_packed_or_not(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM

    import llm.local_packed

    monkeypatch.setattr(llm.local_packed, "SMALL", 1)
    before = torch.get_num_threads()
    model = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.bfloat16).eval()
    mlp = model.model.layers[0].mlp
    mlp.up_proj.weight.data = four_bit(*mlp.up_proj.weight.shape)
    torch.set_num_threads(2)
    try:
        assert pack_model(model) == 1
        seen: list[int] = []
        mlp.down_proj.register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
        with torch.inference_mode():
            model(input_ids=torch.full((1, 1), 7))
        assert seen == [2]
    finally:
        torch.set_num_threads(before)


def test_float32_models_stay_as_they_are(tiny_folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32).eval()
    mlp = model.model.layers[0].mlp
    mlp.up_proj.weight.data = four_bit(*mlp.up_proj.weight.shape).float()
    assert pack_model(model) == 0


@pytest.mark.parametrize("quantization", ["auto", "none"])
def test_the_setting_decides(
    tiny_folder: Path,
    tmp_path: Path,
    make_backend: Callable[..., LocalBackend],
    quantization: str,
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.bfloat16)
    mlp = model.model.layers[0].mlp
    mlp.up_proj.weight.data = four_bit(*mlp.up_proj.weight.shape)
    model.save_pretrained(tmp_path / "m")
    AutoTokenizer.from_pretrained(tiny_folder).save_pretrained(tmp_path / "m")
    backend = make_backend(tmp_path / "m", quantization=quantization, dtype="bfloat16")
    assert read(backend, ask(max_tokens=4))[1].usage.completion_tokens == 4
    kind = type(model_of(backend).model.layers[0].mlp.up_proj)
    assert (kind is PackedLinear) == (quantization == "auto")
