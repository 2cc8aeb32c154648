"""Choosing the next token so that answers running beside each other don't touch each other.

`generate(do_sample=True)` draws from torch's process-wide generator: with two answers at once a
seed means nothing. Here each request brings its own generator, as the last logits processor of a
greedy `generate()`.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from llm.types import SamplingParams


class GumbelSampler:
    """A logits processor after which the greatest score is a sample of the distribution.

    For independent standard Gumbel noise g_i, argmax(logits_i + g_i) is distributed exactly as
    softmax(logits). The noise is -log of exponential noise.

    Source: Gumbel-max trick, E. J. Gumbel 1954; Maddison, Tarlow, Minka, "A* Sampling",
    https://arxiv.org/abs/1411.0030.

    Thread-safety: none; one answer uses it, on one thread.

    Args:
        seed: the same seed and request give the same answer; None gives another each time.
    """

    def __init__(self, seed: int | None) -> None:
        self._seed = seed
        self._generator: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores of shape (B, V) to perturbed scores of the same shape."""
        if self._generator is None:
            self._generator = torch.Generator(device=scores.device)
            if self._seed is None:
                self._generator.seed()
            else:
                self._generator.manual_seed(self._seed)
        noise = torch.empty_like(scores).exponential_(generator=self._generator)
        # A zero would make infinite noise, and NaN where the score is -inf.
        return scores - noise.clamp_min_(torch.finfo(noise.dtype).tiny).log_()


def processors(params: SamplingParams, defaults: Any) -> Any:
    """What stands between the model's logits and the choice, in transformers' own order.

    Args:
        params: the request's.
        defaults: the model's generation config. Its repetition penalty and the like are applied
            by `generate` itself; its top-k and min-p, which go with sampling, are applied here,
            as vLLM applies a model's own generation config.
    """
    chain = LogitsProcessorList()
    if params.temperature == 0:
        return chain
    if params.temperature != 1:
        chain.append(TemperatureLogitsWarper(float(params.temperature)))
    if defaults.top_k:
        chain.append(TopKLogitsWarper(defaults.top_k))
    if params.top_p < 1:
        chain.append(TopPLogitsWarper(float(params.top_p)))
    if defaults.min_p:
        chain.append(MinPLogitsWarper(defaults.min_p))
    chain.append(GumbelSampler(params.seed))
    return chain


def generation_config(defaults: Any, eos_ids: tuple[int, ...], max_new_tokens: int) -> Any:
    """The model's generation config, copied and fitted to one request: greedy, one sequence."""
    config = copy.deepcopy(defaults)
    config.update(
        do_sample=False,
        temperature=None,
        top_p=None,
        top_k=None,
        min_p=None,
        typical_p=None,
        epsilon_cutoff=None,
        eta_cutoff=None,
        num_beams=1,
        num_return_sequences=1,
        max_length=None,
        max_new_tokens=max_new_tokens,
        min_length=None,
        return_dict_in_generate=False,
        eos_token_id=list(eos_ids) or None,
    )
    if config.pad_token_id is None and eos_ids:
        config.pad_token_id = eos_ids[0]
    return config
