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

_LIKELIEST = 1024  # tokens that nearly always hold the nucleus


GREEDY_BELOW = 1e-5
"""A lower temperature is 0: dividing by it would make several scores infinite.

Source: vLLM, sampling_params.py, _SAMPLING_EPS.
"""


class PenaltyProcessor:
    """Puts off tokens that the answer has already; those of the prompt don't count.

    Source: vLLM, model_executor/layers/utils.py, apply_penalties, which follows the definition of
    the OpenAI API: logits -= frequency_penalty * count + presence_penalty * (count > 0).

    Thread-safety: it keeps nothing between calls.

    Args:
        prompt_tokens: how many of the ids are the prompt's.
    """

    def __init__(self, prompt_tokens: int, presence: float, frequency: float) -> None:
        self._prompt_tokens = prompt_tokens
        self._presence = presence
        self._frequency = frequency

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Ids of shape (B, T) and scores of shape (B, V) to new scores of shape (B, V)."""
        answer = input_ids[:, self._prompt_tokens :]
        counts = torch.zeros_like(scores)
        counts.scatter_add_(1, answer, torch.ones_like(answer, dtype=scores.dtype))
        return scores - self._frequency * counts - self._presence * (counts > 0)


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
        self._before: Any = None  # the generator's state before the last token

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores of shape (B, V) to perturbed scores of the same shape."""
        if self._generator is None:
            self._generator = torch.Generator(device=scores.device)
            if self._seed is None:
                self._generator.seed()
            else:
                self._generator.manual_seed(self._seed)
        self._before = self._generator.get_state()  # 1 µs, and on a GPU the host's own
        noise = torch.empty_like(scores).exponential_(generator=self._generator)
        # A zero would make infinite noise, and NaN where the score is -inf.
        return scores - noise.clamp_min_(torch.finfo(noise.dtype).tiny).log_()

    def undo(self) -> None:
        """The next token has the noise of the last one again."""
        if self._before is not None:
            self._generator.set_state(self._before)


class NucleusWarper:
    """The least number of likeliest tokens that have `top_p` of the probability together.

    transformers' own sorts the whole vocabulary, which on a CPU takes most of the time of choosing
    a token: 12 ms for 49,152 of them, this 0.6. Nearly always a few hundred hold the mass. Of
    equally likely ones at its edge all are kept, there those that the sort happens to leave.

    Thread-safety: it keeps nothing between calls.
    """

    def __init__(self, top_p: float) -> None:
        self._top_p = top_p
        self._sorting = TopPLogitsWarper(top_p)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores of shape (B, V) to scores that are -inf outside of the nucleus."""
        if scores.device.type != "cpu":
            return self._sorting(input_ids, scores)  # to look whether a few suffice takes longer
        likeliest = scores.topk(min(_LIKELIEST, scores.shape[-1])).values
        shares = (likeliest - scores.logsumexp(-1, keepdim=True)).exp()
        mass = shares.cumsum(-1)
        if (mass[:, -1] < self._top_p).any():
            return self._sorting(input_ids, scores)
        # At least one, also of scores that a penalty made infinite: their shares are no numbers.
        kept = (mass - shares < self._top_p).sum(-1, keepdim=True).clamp_min(1)
        return scores.masked_fill(scores < likeliest.gather(-1, kept - 1), -torch.inf)


def processors(params: SamplingParams, defaults: Any, prompt_tokens: int) -> Any:
    """What stands between the model's logits and the choice, in transformers' own order.

    Args:
        params: the request's.
        defaults: the model's generation config, whose values count where the request has none,
            as in vLLM. Repetition penalties and the like are applied by `generate` itself.
        prompt_tokens: how many tokens the prompt has.
    """
    chain = LogitsProcessorList()
    presence, frequency = params.presence_penalty or 0.0, params.frequency_penalty or 0.0
    if presence or frequency:
        chain.append(PenaltyProcessor(prompt_tokens, presence, frequency))
    temperature = _first(params.temperature, defaults.temperature, 1)
    if temperature < GREEDY_BELOW:
        return chain
    if temperature != 1:
        chain.append(TemperatureLogitsWarper(float(temperature)))
    if top_k := _first(params.top_k, defaults.top_k, 0):
        chain.append(TopKLogitsWarper(int(top_k)))
    if (top_p := _first(params.top_p, defaults.top_p, 1)) < 1:
        chain.append(NucleusWarper(float(top_p)))
    if min_p := _first(params.min_p, defaults.min_p, 0):
        chain.append(MinPLogitsWarper(float(min_p)))
    chain.append(GumbelSampler(params.seed))
    return chain


class Chooser:
    """Chooses one answer's tokens as `generate` would, from logits that somebody else computes.

    Source: transformers, GenerationMixin._sample, which makes its processors in the same way.

    Thread-safety: none; one answer uses it, on one thread.

    Args:
        model: the model, for what its own generation config says.
        params: the request's.
        eos_ids: ids that end an answer.
        ids: the prompt's, of shape (1, T), where the logits are.
        max_new_tokens: that the answer may have.
    """

    def __init__(
        self,
        model: Any,
        params: SamplingParams,
        eos_ids: tuple[int, ...],
        ids: Any,
        max_new_tokens: int,
    ) -> None:
        self._count = ids.shape[1]
        self._ids = torch.nn.functional.pad(ids, (0, max_new_tokens))
        config = generation_config(params, model.generation_config, eos_ids, max_new_tokens)
        config.max_length = self._count + max_new_tokens
        model._prepare_special_tokens(config, True, device=ids.device, batch_size=1)
        own = processors(params, model.generation_config, self._count)
        self._samplers = [each for each in own if isinstance(each, GumbelSampler)]  # one at most
        self._processors = model._get_logits_processor(
            config,
            input_ids_seq_length=self._count,
            device=ids.device,
            logits_processor=own,
            model_kwargs={},
        )

    def __call__(self, logits: Any) -> Any:
        """The next id, a tensor of shape (), from logits of shape (1, V)."""
        token = self._processors(self._ids[:, : self._count], logits)[0].argmax()
        self._ids[0, self._count] = token
        self._count += 1
        return token

    def undo(self) -> None:
        """Forget the last choice, which nobody has heard of; it will be made again."""
        self._count -= 1
        for sampler in self._samplers:
            sampler.undo()


def _first(*values: float | None) -> float:
    """The first that there is; the last always is."""
    return next(value for value in values if value is not None)


def generation_config(
    params: SamplingParams, defaults: Any, eos_ids: tuple[int, ...], max_new_tokens: int
) -> Any:
    """The model's generation config, copied and fitted to one request: greedy, one sequence.

    transformers' repetition penalty is vLLM's: it counts the prompt's tokens too.
    """
    config = copy.deepcopy(defaults)
    if params.repetition_penalty is not None:
        config.repetition_penalty = float(params.repetition_penalty)
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
