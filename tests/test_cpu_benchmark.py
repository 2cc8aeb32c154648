"""What the CPU benchmark compares, on a model whose answers are nonsense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

# As the other tests of local models do: one thread alone may import it first.
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.agreement import Agreement, measure_agreement, perplexity
from benchmarks.cpu import CpuFigures, cpu_section
from benchmarks.through_page import Run

pytest_plugins = "tests.local_fixtures"

PROMPTS = ("Hello", "What is the capital of France?")
TEXT = "The quick brown fox jumps over the lazy dog."


@pytest.fixture(scope="module")
def tokenizer(tiny_folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(tiny_folder)


@pytest.fixture
def exact(tiny_folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32).eval()


def test_a_model_agrees_with_itself(exact: Any, tokenizer: Any) -> None:
    same = measure_agreement(exact, exact, tokenizer, PROMPTS, 12, TEXT)
    assert same.identical == same.answers == 2
    assert same.together_tokens == same.answer_tokens == 12
    assert same.perplexity == same.exact_perplexity


def test_a_model_with_another_head_parts_ways_at_once(
    exact: Any, tokenizer: Any, tiny_folder: Path
) -> None:
    other = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32).eval()
    other.lm_head.weight.data = other.lm_head.weight.data.flip(0)
    same = measure_agreement(other, exact, tokenizer, PROMPTS, 12, TEXT)
    assert same.identical == 0
    assert same.together_tokens < 2
    assert same.perplexity != same.exact_perplexity


def test_perplexity_token_by_token_is_that_of_one_pass(exact: Any, tokenizer: Any) -> None:
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        lost = torch.nn.functional.cross_entropy(exact(ids).logits[0, :-1], ids[0, 1:])
    assert perplexity(exact, tokenizer, TEXT) == pytest.approx(float(lost.exp()), rel=1e-4)


def figures(llama_cpp: tuple[Run, ...]) -> CpuFigures:
    agreement = Agreement(9, 30, 34.9, 54.1, 31.0, 30.9)
    return CpuFigures(
        llama_cpp=llama_cpp,
        bare=(Run(64, 15.0, 0.1),),
        app=(Run(64, 41.0, 0.1),),
        load=0.0,
        agreement=agreement,
        bare_agreement=agreement,
    )


def test_the_goal_is_held_against_llama_cpp() -> None:
    rows = {row.figure: row for row in cpu_section(figures((Run(64, 55.0, 0.3),))).rows}
    assert rows["app / llama.cpp"].values["app"].startswith("0.75")
    assert rows["app / llama.cpp"].met
    assert rows["perplexity over float32's"].met


def test_without_llama_cpp_its_rows_are_missing() -> None:
    named = [row.figure for row in cpu_section(figures(())).rows]
    assert not [name for name in named if "llama" in name]
    assert "app / bare" in named
