"""A long answer of an exact number of characters, as much alike at its end as at its beginning.

It is made of rounds. Each has the same kinds of blocks (headings, paragraphs in English and
Chinese, lists flat and nested, code, tables, a quotation, a formula), the order and the words
chosen by a seeded generator: two windows of whole rounds ask the same of a screen, wherever in the
answer they lie.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.answers import BEGIN_MARK, BLOCK_MARK

_SOME = (
    "queue tenant scheduler deadline budget slice worker batch token window cache lease clock "
    "shard replica quorum ledger index cursor buffer page frame latency jitter backlog retry "
    "waits drains fills spends yields claims settles grows shrinks moves reads writes keeps drops "
    "slowly at once in turn for now before the next while the rest with no loss under load again"
)
_WORDS = _SOME.split()
_HAN = (
    "队列租户调度截止预算切片工作批次令牌窗口缓存租约时钟分片副本账本索引游标缓冲页面延迟重试等待"
)

END_WORD = "END-OF-LONG-ANSWER"


def long_answer(chars: int, seed: int = 7) -> str:
    """An answer of exactly `chars` characters; the same numbers give the same answer.

    Every block carries a numbered mark, as those of `answers.answer` do, and the last paragraph
    is `long_end_mark(chars)`.

    Raises:
        ValueError: it can't hold a round.
    """
    chance = random.Random(seed)
    end = "\n\n" + long_end_mark(chars)
    text = f"{BEGIN_MARK} This is about queues. §1§"
    number = 2
    while True:
        whole = text
        for make in chance.sample(_BLOCKS, len(_BLOCKS)):
            whole += "\n\n" + make(chance, number)
            number += 1
        if len(whole) + len(end) + 20 > chars:
            break
        text = whole
    if len(BLOCK_MARK.findall(text)) < len(_BLOCKS):
        raise ValueError(f"{chars} characters can't hold a round")
    # The rest is short paragraphs, so that the length is exact and the tail stays small.
    while (left := chars - len(text) - len(end)) > 420:
        text += "\n\n" + _words(chance, 50)[:300]
    return text + "\n\n" + "so " * ((left - 2) // 3) + "x" * ((left - 2) % 3) + end


def long_end_mark(chars: int) -> str:
    """What the last paragraph says; it stands nowhere else."""
    return f"{END_WORD}-{chars}"


def long_question(chars: int) -> str:
    """What to ask for `long_answer(chars)`."""
    return f"please answer in {chars} characters"


def _words(chance: random.Random, count: int) -> str:
    return " ".join(chance.choice(_WORDS) for _ in range(count))


def _heading(chance: random.Random, number: int) -> str:
    return f"## {_words(chance, 4).capitalize()} §{number}§"


def _paragraph(chance: random.Random, number: int) -> str:
    return (
        f"The **{_words(chance, 2)}** {_words(chance, 22)}, and `{_words(chance, 1)}` "
        f"{_words(chance, 20)}. {_words(chance, 18).capitalize()}. §{number}§"
    )


def _chinese(chance: random.Random, number: int) -> str:
    sentence = "".join(chance.choices(_HAN, k=70))
    return f"{sentence}，**{''.join(chance.choices(_HAN, k=4))}**之后继续。§{number}§"


def _steps(chance: random.Random, number: int) -> str:
    steps = (f"{n}. Step {n}: *{_words(chance, 1)}* {_words(chance, 9)}" for n in range(1, 7))
    return "\n".join(steps) + f" §{number}§"


def _nested(chance: random.Random, number: int) -> str:
    return (
        "\n".join(
            f"- {_words(chance, 6)}\n  - {_words(chance, 5)}\n  - `{_words(chance, 1)}`"
            for _ in range(3)
        )
        + f" §{number}§"
    )


def _code(chance: random.Random, number: int) -> str:
    lines = []
    for at in range(6):
        one, other = chance.choice(_WORDS), chance.choice(_WORDS)
        lines += [
            f"def {one}_{at}(self, {other}: float = {chance.random():.3f}) -> list[str]:",
            f"    taken = [item for item in self.{other} if item.cost < {at} + {other}]",
            f'    return sorted(taken, key=lambda item: item.{one})  # "{_words(chance, 3)}"',
        ]
    return f"Here it is §{number}§:\n\n```python\n" + "\n".join(lines) + "\n```"


def _table(chance: random.Random, number: int) -> str:
    rows = "\n".join(
        f"| {_words(chance, 1)} | {chance.randrange(90_000):,} | {_words(chance, 4)} |"
        for _ in range(6)
    )
    return f"Here it is §{number}§:\n\n| queue | tokens | note |\n| --- | ---: | --- |\n{rows}"


def _quotation(chance: random.Random, number: int) -> str:
    return f"> {_words(chance, 24)} §{number}§"


def _formula(chance: random.Random, number: int) -> str:
    return f"Here $W = \\frac{{\\rho}}{{\\mu (1 - {chance.random():.2f})}}$ {_words(chance, 8)} §{number}§"


_BLOCKS: tuple[Callable[[random.Random, int], str], ...] = (
    *(_heading, _paragraph, _chinese, _steps, _paragraph, _nested),
    *(_code, _paragraph, _table, _quotation, _formula, _paragraph),
)
