"""Attention of one new token gives transformers' numbers; all else is transformers' own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

import llm.local_sdpa
from llm.local_sdpa import attend


def states(heads: int, tokens: int, kept: int, *, groups: int = 3, batch: int = 2) -> Any:
    torch.manual_seed(0)
    sizes = ((heads, tokens), (groups, kept), (groups, kept))
    return [torch.randn(batch, count, length, 16).bfloat16() for count, length in sizes]


def module(heads: int, groups: int = 3) -> Any:
    return SimpleNamespace(num_key_value_groups=heads // groups, is_causal=True, training=False)


@pytest.fixture
def handed_on(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of new tokens that were left to transformers."""
    seen: list[int] = []

    def counted(module: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(query.shape[2])
        return sdpa_attention_forward(module, query, *args, **kwargs)

    monkeypatch.setattr(llm.local_sdpa, "sdpa_attention_forward", counted)
    return seen


@pytest.mark.parametrize("kept", [1, 40, 300])
@pytest.mark.parametrize("batch", [1, 2])
def test_one_new_token_sees_the_same(kept: int, batch: int, handed_on: list[int]) -> None:
    given = states(9, 1, kept, batch=batch)
    theirs, _ = sdpa_attention_forward(module(9), *given, None, scaling=0.3)
    mine, weights = attend(module(9), *given, None, scaling=0.3, dropout=0.0)
    assert mine.shape == theirs.shape == (batch, 1, 9, 16)
    assert weights is None
    torch.testing.assert_close(mine, theirs, rtol=0.02, atol=0.02)
    assert handed_on == []


@pytest.mark.parametrize(
    ("heads", "tokens", "masked"), [(9, 5, False), (3, 1, False), (9, 1, True), (9, 5, True)]
)
def test_all_else_is_left_to_transformers(
    heads: int, tokens: int, masked: bool, handed_on: list[int]
) -> None:
    kept = 7 if tokens == 1 or masked else tokens
    given = states(heads, tokens, kept)
    mask = torch.rand(2, 1, tokens, kept) > 0.3 if masked else None
    if mask is not None:
        mask[..., 0] = True
    theirs, _ = sdpa_attention_forward(module(heads), *given, mask, scaling=0.3)
    mine, _ = attend(module(heads), *given, mask, scaling=0.3)
    assert torch.equal(mine, theirs)
    assert handed_on == [tokens]


def test_scores_that_are_changed_are_left_to_transformers(handed_on: list[int]) -> None:
    given = states(9, 1, 7)
    attend(module(9), *given, None, scaling=0.3, position_bias=torch.zeros(1, 9, 1, 7))
    with pytest.raises(ValueError, match="softcap"):
        attend(module(9), *given, None, scaling=0.3, softcap=30.0)
    assert handed_on == [1, 1]
