"""The scripted answers: made up, of an exact length, and able to say whether they came whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from llm.script import Script

BEGIN_MARK = "▶"
BLOCK_MARK = re.compile(r"§(\d+)§")
CODE_LINES = 60
SHORT_CODE_LINES = 12
PLAIN_BLOCKS_A_ROUND = 7

_ENGLISH = (
    "The **scheduler** keeps one queue for each tenant and takes a slice from every queue in "
    "turn. A slice ends when its *budget* is spent or the `deadline` has passed; what is left "
    "waits for the next turn, and nobody starves."
)
_CHINESE = (
    "调度器为每个租户各维护一个队列，并轮流从每个队列中取出一小片任务。当**预算**用完或者`截止时间`"
    "到达时，这一片就结束，剩余的部分等待下一轮，因此不会有任何租户被饿死。"
)
_FORMULA = """\
The mean wait is $W = \\frac{\\rho}{\\mu (1 - \\rho)}$, and over all queues

$$
\\sum_{i=1}^{n} \\lambda_i W_i = \\int_0^{\\infty} t \\, e^{-\\mu t} \\, dt
$$"""
_TABLE = """\
| queue | tokens | mean wait | note |
| --- | ---: | ---: | --- |
| interactive | 1,204 | 12 ms | answered at once |
| batch | 88,310 | 1.8 s | fills the gaps |
| 后台 | 9,022 | 31 s | 只在空闲时运行 |
| retry | 42 | 250 ms | doubles each time |"""


def answer(tokens: int) -> str:
    """An answer that the scripted backend splits into exactly `tokens` pieces.

    Headings, lists, paragraphs in English and Chinese, formulas, a table and two code blocks of
    60 lines (shorter where the answer is under 3,000 tokens). Every block carries a numbered
    mark, and the last paragraph is `end_mark(tokens)`. The same number gives the same answer.

    Raises:
        ValueError: under 600 tokens it can't hold all of that.
    """
    if tokens < 600:
        raise ValueError("at least 600 tokens are needed")
    end = "\n\n" + end_mark(tokens)
    room = tokens - _count(end) - 10
    once, again = _special_blocks(tokens), _plain_blocks()
    text = f"{BEGIN_MARK} This is about queues. §1§"
    skipped = 0
    for number in count(2):
        special = bool(once) and _count(text) >= once[0][0]
        block = "\n\n" + _marked(once.pop(0)[1] if special else next(again), number - skipped)
        if _count(text + block) <= room:
            text += block
        elif skipped < PLAIN_BLOCKS_A_ROUND:  # Perhaps a shorter one fits.
            skipped += 1
        else:
            break
    text += "\n\nIt ends here"
    # A word of up to three letters is one piece more.
    text += " so" * (tokens - _count(text + end))
    return text + end


def _marked(block: str, number: int) -> str:
    """The block with its mark, where the mark is text on the screen whatever the block is."""
    if block.startswith(("```", "|")):
        return f"Here it is §{number}§:\n\n{block}"
    if block.endswith("$$"):
        return f"{block}\n\nSo it is §{number}§."
    return f"{block} §{number}§"


def end_mark(tokens: int) -> str:
    """What the last paragraph of `answer(tokens)` says; it stands nowhere else."""
    return f"END-OF-ANSWER-{tokens}"


def missing_blocks(answer_text: str, shown: str) -> list[int]:
    """The numbers of the answer's blocks that the screen lacks, has twice or has out of order."""
    told = [int(number) for number in BLOCK_MARK.findall(answer_text)]
    seen = [int(number) for number in BLOCK_MARK.findall(shown)]
    if seen == told:
        return []
    wrong = [number for number in told if seen.count(number) != 1]
    return wrong or [number for number, other in zip(told, seen, strict=True) if number != other]


def _count(text: str) -> int:
    return sum(1 for _ in Script(text).pieces(""))


def _special_blocks(tokens: int) -> list[tuple[int, str]]:
    """The blocks that come once, each with the piece from which it is due."""
    lines = CODE_LINES if tokens >= 3000 else SHORT_CODE_LINES
    shares = [(0.15, _code(lines, 1)), (0.4, _TABLE), (0.6, _code(lines, 2))]
    if tokens < 1500:
        shares = [(0.05, _code(SHORT_CODE_LINES, 1)), (0.6, _TABLE)]
    return [(int(share * tokens), block) for share, block in shares]


def _plain_blocks() -> Iterator[str]:
    """The blocks that come again and again."""
    for round_number in count(1):
        yield f"## Round {round_number}: who is served next"
        yield _ENGLISH
        yield _FORMULA
        yield _CHINESE
        yield "\n".join(
            f"{step}. Step {step} of round {round_number}: *move* the head of queue `q{step}`, "
            f"then read its clock."
            for step in range(1, 7)
        )
        yield _ENGLISH.replace("scheduler", "dispatcher")
        yield "- first, the interactive queue\n  - its budget: 20 ms\n- then, 批处理队列\n- last, retries"


def _code(lines: int, part: int) -> str:
    body = [f"class Queue{part}:", '    """One tenant\'s waiting work."""', ""]
    for number in count(1):
        if len(body) >= lines:
            break
        body += [
            f"    def take_{number}(self, budget_ms: float = {number * 2.5}) -> list[str]:",
            f"        taken = [item for item in self._items if item.cost < {number} + budget_ms]",
            f'        self._log.info("turn %d took %d", {number}, len(taken))',
            "        return sorted(taken, key=lambda item: item.deadline)",
            "",
        ]
    return "```python\n" + "\n".join(body[:lines]) + "\n```"


WARM_UP_QUESTION = "warm up"
WARM_UP_MARK = "END-OF-WARM-UP"
WARM_UP = f"""\
A short one first, so that the browser has its highlighter and its formulas.

```python
print("warm")
```

$$
a^2 + b^2 = c^2
$$

{WARM_UP_MARK}"""


def question(tokens: int) -> str:
    """What to ask for `answer(tokens)`."""
    return f"please answer in {tokens} pieces"


def short_question(number: int) -> str:
    """What to ask for a one-line answer."""
    return f"one line, number {number}"


def short_mark(number: int) -> str:
    """What the one-line answer to `short_question(number)` holds, and the question doesn't."""
    return f"<{short_question(number)}>"


def write_scripts(folder: Path, tokens: int, tokens_per_s: float) -> Path:
    """A scripts file with `answer(tokens)` at that rate, the warm-up and the one-line answers."""
    return write_answers(folder, {question(tokens): answer(tokens)}, tokens_per_s)


def write_answers(folder: Path, told: Mapping[str, str], tokens_per_s: float) -> Path:
    """A scripts file with an answer by its question, all at that rate, and the short ones."""
    rules = [
        *({"when": q, "text": text, "tokens_per_s": tokens_per_s} for q, text in told.items()),
        {"when": WARM_UP_QUESTION, "text": WARM_UP, "tokens_per_s": 200},
        {"when": "one line", "text": "This is the answer to \\<{question}>."},
    ]
    path = folder / "scripts.json"
    path.write_text(json.dumps({"rules": rules}, ensure_ascii=False), encoding="utf-8")
    return path
