"""What a model would take, told from its files, against what it takes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from llm.local_packed import cpu_packs
from llm.model_facts import EMBEDDED_FACTS, ModelFacts, NoFactsError, facts_of_folder, facts_of_gguf
from llm.model_fit import context_bytes, fit, weights_bytes
from tests.model_data import model_data_dir
from tests.tiny_gguf import write_tiny_gguf
from tests.tiny_model import make_tiny_model

GIB = 1 << 30
EIGHT_BILLION = ModelFacts(
    matrix_weights=7_000_000_000,
    other_weights=1_000_000_000,
    context_tokens=131_072,
    cached_values=2 * 8 * 128 * 32,
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("fit") / "Tiny")


def test_the_weights_are_counted_to_the_last_one(tiny: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny)
    matrices = sum(layer.weight.numel() for _, layer in model.model.named_modules() if hasattr(layer, "in_features"))  # fmt: skip
    facts = facts_of_folder(tiny)
    assert facts.matrix_weights == matrices
    assert facts.matrix_weights + facts.other_weights == model.num_parameters()


def test_a_gguf_file_tells_the_same_as_the_folder_it_was_made_of(
    tiny: Path, tmp_path: Path
) -> None:
    of_folder, of_file = (
        facts_of_folder(tiny),
        facts_of_gguf(write_tiny_gguf(tiny, tmp_path / "Tiny.gguf")),
    )
    assert of_file == replace(of_folder, quantization="F32")


def test_the_cache_is_counted_to_the_last_number(tiny: Path) -> None:
    from transformers import AutoModelForCausalLM, DynamicCache

    model = AutoModelForCausalLM.from_pretrained(tiny)
    cache = DynamicCache(config=model.config)
    import torch

    model(torch.ones(1, 100, dtype=torch.long), cache=cache, use_cache=True)
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert context_bytes(facts_of_folder(tiny), 100, number_bytes=4) == held


@pytest.mark.parametrize(
    ("quantization", "gigabytes"), [("none", 16.0), ("8bit", 9.0), ("4bit", 5.612)]
)
def test_quantization_makes_matrices_smaller_and_nothing_else(
    quantization: str, gigabytes: float
) -> None:
    assert weights_bytes(EIGHT_BILLION, quantization, 2) == round(gigabytes * 1e9)


def test_what_was_quantized_when_it_was_made_takes_what_lies_there(
    tiny: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "M"
    folder.mkdir()
    config = json.loads((tiny / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes((tiny / "model.safetensors").read_bytes())
    facts = facts_of_folder(folder)
    assert facts.quantization == "gptq"
    assert weights_bytes(facts, "none", 2) == 4 * (facts.matrix_weights + facts.other_weights)


@pytest.mark.parametrize(
    ("free_gib", "level", "tokens"), [(40, "fits", 131_072), (20, "short", 41_769), (14, "no", 0)]
)
def test_a_model_fits_fits_for_shorter_conversations_or_does_not(
    free_gib: int, level: str, tokens: int
) -> None:
    held = fit(EIGHT_BILLION, "none", 2, free_gib * GIB)
    assert (held.level, held.context_bytes) == (level, 16 * GIB)
    assert held.fitting_tokens == pytest.approx(tokens, abs=10)


def test_layers_that_look_back_a_little_way_keep_no_more(tmp_path: Path, tiny: Path) -> None:
    config = json.loads((tiny / "config.json").read_text())
    kinds = ["sliding_attention"] * 5 + ["full_attention"] + ["linear_attention"] * 2
    config |= {"layer_types": kinds, "sliding_window": 100, "num_hidden_layers": 8}
    folder = tmp_path / "M"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "x", "text_config": config}))
    (folder / "model.safetensors").write_bytes((tiny / "model.safetensors").read_bytes())
    facts = facts_of_folder(folder)
    layer = 2 * 2 * 16  # keys and values, two heads of 16
    assert context_bytes(facts, 50, 2) == 6 * layer * 50 * 2
    assert context_bytes(facts, 512, 2) == (5 * layer * 100 + layer * 512) * 2


def test_without_a_config_there_are_no_facts(tmp_path: Path) -> None:
    with pytest.raises(NoFactsError) as caught:
        facts_of_folder(tmp_path)
    assert caught.value.reason.message_id == "reason-no-config"


def test_the_packed_copy_is_counted_where_one_is_made_and_not_of_large_models() -> None:
    small = replace(EIGHT_BILLION, matrix_weights=900_000_000, other_weights=100_000_000)
    small = replace(small, packed_bytes=600_000_000)
    assert weights_bytes(small, "auto", 2) == 2_000_000_000
    assert weights_bytes(small, "auto", 2, packs=True) == 2_600_000_000
    assert fit(small, "auto", 2, 2_500_000_000, packs=True).fitting_tokens == 0
    large = replace(EIGHT_BILLION, packed_bytes=5_000_000_000)
    assert weights_bytes(large, "auto", 2, packs=True) == 16_000_000_000


@pytest.mark.model
def test_what_is_told_of_the_embedded_model_before_it_is_fetched_is_what_its_file_tells() -> None:
    (file,) = (model_data_dir() / "models").glob("SmolLM2-*.gguf")
    assert facts_of_gguf(file) == EMBEDDED_FACTS


# Against what is measured, each in a process of its own

_MEASURE = """
import sys
from dataclasses import replace
from pathlib import Path
import psutil
from llm.local_backend import LocalBackend, LocalOptions
from llm.types import CancelToken
from tests.local_answers import ask
data, tiny, model, dtype, quantization = Path(sys.argv[1]), *sys.argv[2:]
backend = LocalBackend(LocalOptions(data, tiny, dtype=dtype, quantization="none"))
list(backend.stream(ask("Hello", max_tokens=1), CancelToken()))
before = psutil.Process().memory_info().rss
backend.choose(replace(backend.chosen, model=model, name="Measured", quantization=quantization))
list(backend.stream(ask("Hello", max_tokens=1), CancelToken()))
assert backend.status().model == "Measured"
print(psutil.Process().memory_info().rss - before)
"""


def measured(data: Path, tiny: Path, model: str, dtype: str, quantization: str) -> int:
    """By how much a process grows that has had a tiny model answer, and then has this one."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(data), str(tiny), model, dtype, quantization],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.split()[-1])


@pytest.mark.model
@pytest.mark.parametrize(
    ("dtype", "number_bytes", "quantization"),
    [("bfloat16", 2, "none"), ("bfloat16", 2, "auto"), ("float32", 4, "auto")],
)
def test_the_estimate_for_the_embedded_model_is_what_is_measured(
    tiny: Path, dtype: str, number_bytes: int, quantization: str
) -> None:
    """Within 10 %, and 64 MB for a tokenizer of 49,000 words."""
    packs = cpu_packs() and (dtype, quantization) == ("bfloat16", "auto")
    told = weights_bytes(EMBEDDED_FACTS, quantization, number_bytes, packs=packs)
    grown = measured(model_data_dir(), tiny, "embedded", dtype, quantization)
    assert 0.9 * told <= grown <= 1.1 * told + 64e6


def test_the_estimate_for_a_tiny_model_is_next_to_nothing_and_so_is_what_is_measured(
    tiny: Path, tmp_path: Path
) -> None:
    assert weights_bytes(facts_of_folder(tiny), "none", 4) < 1e6
    assert measured(tmp_path, tiny, str(tiny), "float32", "none") < 16e6
