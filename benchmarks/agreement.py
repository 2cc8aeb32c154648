"""Whether a quicker way to compute gives the same answers: greedy ones, and a text's perplexity.

Both are held against the same weights computed in float32. Greedy answers part ways sooner or
later, in bf16 too, since two words are often equally likely; after that nothing can be compared.
So what counts is how far they go together, on average, and the perplexity, which knows no such
chance. One token is computed at a time, as in an answer: a prompt's many are another way.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PROMPTS = (
    "What is the capital of France?",
    "Explain in two sentences why the sky is blue.",
    "Write a haiku about the sea.",
    "Name three primary colours.",
    "What is the boiling point of water at sea level?",
    "Give me a recipe for pancakes.",
    "Translate 'good morning' into Spanish.",
    "Who wrote Romeo and Juliet?",
    "Write a Python function that adds two numbers.",
    "What is the difference between a lake and a river?",
    "List the planets of the solar system.",
    "How do I tie a shoelace?",
    "Write a short story about a lighthouse keeper.",
    "What does photosynthesis do?",
    "Summarise the idea of gravity for a child.",
    "How many days are there in a leap year?",
    "Suggest a name for a small black cat.",
    "What is a prime number?",
    "Write an email asking a colleague for a report.",
    "Why do we have seasons?",
    "What should I pack for a weekend in the mountains?",
    "Explain what a database index is.",
    "Tell me a joke about computers.",
    "What are the benefits of regular exercise?",
    "Describe the taste of a lemon.",
    "How does a bicycle stay upright?",
    "Write a slogan for a bakery.",
    "What is the largest ocean on Earth?",
    "Give three tips for learning a language.",
    "What is the meaning of the word 'serene'?",
)

TEXT = """\
The keeper climbed the stairs every evening, counting them although he knew how many there were.
At the top he lit the lamp, wiped the glass and looked out over the water, which was never the same
colour twice. For thirty years he had written down the weather in a book with a green cover: the
wind, the height of the waves, the ships that passed and those that turned back. One winter a parcel
came for him with paints and brushes in it, and no letter. He put it on a shelf beside the tins of
oil and forgot about it until the spring, when a storm broke the window on the western side.

While he waited for the new glass he had nothing to do in the afternoons, so he opened the parcel.
His first picture was grey, because he thought that the sea was grey. Then he sat down and looked at
it for a whole day, as one looks at a face. In the morning it was the green of old bottles, and white
where it touched the rocks. At noon the light came straight down and made it almost black. Only in
the evening, just before it was time to climb the stairs again, did it turn the grey that he had
painted, and even then there was a thin line of gold along the horizon. He mixed that gold for three
weeks before he was content with it. People in the village say that you can see it from the harbour
if you know where to look, and that the ships no longer turn back.
"""


@dataclass(frozen=True, slots=True)
class Agreement:
    """One way to compute against float32.

    Args:
        identical: answers that were the same to their end, or to the last token asked for.
        answers: of so many.
        together_tokens: how far each answer was float32's, on average.
        answer_tokens: how long they were, on average.
        perplexity: of `TEXT`.
        exact_perplexity: the same in float32.
    """

    identical: int
    answers: int
    together_tokens: float
    answer_tokens: float
    perplexity: float
    exact_perplexity: float


def measure_agreement(
    model: Any, exact: Any, tokenizer: Any, prompts: Sequence[str], tokens: int, text: str = TEXT
) -> Agreement:
    """Answer greedily with `model`, and have `exact` say at each token what it would have said.

    Up to the first difference both have read the same, so one pass of `exact` over the whole answer
    is as good as its own answer.

    Args:
        exact: the same weights in float32.
        tokens: the most an answer may have.
    """
    together, lengths, identical = [], [], 0
    for prompt in prompts:
        start, answer = _answer(model, tokenizer, prompt, tokens)
        same = _together(exact, start, answer)
        together.append(same)
        lengths.append(len(answer))
        identical += same == len(answer)
    return Agreement(
        identical=identical,
        answers=len(prompts),
        together_tokens=statistics.mean(together),
        answer_tokens=statistics.mean(lengths),
        perplexity=perplexity(model, tokenizer, text),
        exact_perplexity=perplexity(exact, tokenizer, text),
    )


def _answer(model: Any, tokenizer: Any, prompt: str, tokens: int) -> tuple[Any, Any]:
    """Ids of the prompt and of its greedy answer, both of shape (T,)."""
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )
    ids = model.generate(**inputs, do_sample=False, max_new_tokens=tokens)
    start = inputs["input_ids"][0]
    return start, ids[0, len(start) :]


def _together(exact: Any, start: Any, answer: Any) -> int:
    """Tokens of the answer before the first that `exact` would not have chosen."""
    import torch

    with torch.inference_mode():
        logits = exact(torch.cat((start, answer))[None]).logits[0]
    other = logits[len(start) - 1 : -1].argmax(dim=-1) != answer
    return int(other.nonzero()[0]) if other.any() else len(answer)


def perplexity(model: Any, tokenizer: Any, text: str) -> float:
    """Of a text, read token by token."""
    import torch
    from transformers import DynamicCache

    ids = tokenizer(text, return_tensors="pt")["input_ids"][0]
    cache = DynamicCache(config=model.config)
    lost = 0.0
    with torch.inference_mode():
        for at in range(len(ids) - 1):
            logits = model(ids[None, at : at + 1], cache=cache, use_cache=True).logits[0]
            lost += float(torch.nn.functional.cross_entropy(logits.float(), ids[at + 1 : at + 2]))
    return math.exp(lost / (len(ids) - 1))
