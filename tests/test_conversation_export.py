"""Conversations as files, which can be read, passed on and imported again."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from llm.conversation_export import to_json, to_markdown, write_markdown_zip
from llm.conversation_import import read
from llm.conversation_json import params_from_json, receipt_from_json
from llm.conversation_tree import (
    Conversation,
    ConversationKey,
    ConversationState,
    Receipt,
    Turn,
    delete_turns,
    new_id,
)
from llm.errors import LLMError, ModelError, Reason, ServerBusyError, StalledError
from llm.export_names import FileNames, file_name
from llm.markdown_grammar import parse_blocks
from llm.nested_markdown import nested
from llm.types import Finish, SamplingParams, Usage

SAMPLES = sorted((Path(__file__).parent / "data" / "markdown").glob("*.md"))
TEXTS = (
    "", "hi", "你好，世界", "👩‍👩‍👧 🏳️‍🌈", "a\r\nb\tc\u2028d", ' "quoted" \\ / </script>', "# heading", "```py\n# x\n",
    "\ufeffBOM", "\x1b[0m", "e\u0301", "\ue200cite\ue201", " \n ", "null", "<details>", "- [ ] x\n\n$$\nx",
)  # fmt: skip
ERRORS = (
    None, StalledError(seconds=3), ServerBusyError(url="http://h/v1", seconds=0),
    ModelError(model="m", reason=Reason("reason-at-least", {"limit": 2})),
)  # fmt: skip
PARAMS = (
    SamplingParams(),
    SamplingParams(temperature=None, top_p=0.1, max_tokens=7, seed=3, top_k=0, stop=("a", "。")),
    SamplingParams(min_p=0.5, repetition_penalty=1.1, presence_penalty=-2, frequency_penalty=0.25),
)
RECEIPTS = (
    None, Receipt("m", Finish("stop")),
    Receipt("通义", Finish("length", Usage(3, 4)), "gpu-1", 0.1, 33.25, 2, 1.5),
    Receipt("", Finish("abort", Usage(None, 0)), ttft_s=0.0),
)  # fmt: skip


def a_turn(number: int, **values: object) -> Turn:
    turn = Turn(f"turn {number}", f"q{number}", "local", SamplingParams(), state="ended")
    return replace(turn, text=f"a{number}", created_s=1e9 + number, **values)  # type: ignore[arg-type]


def a_state(*turns: Turn, **values: object) -> ConversationState:
    head = Conversation(
        ConversationKey("someone", new_id()), leaf=turns[-1].turn_id if turns else ""
    )
    return ConversationState(
        replace(head, **values),  # type: ignore[arg-type]
        {turn.turn_id: turn for turn in turns},
    )


def a_random_state(rng: random.Random) -> ConversationState:
    turns: list[Turn] = []
    for number in range(rng.randrange(1, 25)):
        parent = rng.choice(turns).turn_id if turns and rng.random() < 0.9 else ""
        turns.append(
            replace(
                a_turn(number),
                question=rng.choice(TEXTS),
                text=rng.choice(TEXTS) * rng.randrange(1, 4),
                reasoning=rng.choice(TEXTS),
                system_prompt=rng.choice(TEXTS),
                model=rng.choice(("", "m")),
                params=rng.choice(PARAMS),
                receipt=rng.choice(RECEIPTS),
                error=rng.choice(ERRORS),
                parent=parent,
                continues=rng.choice((parent, "")),
                created_s=rng.choice((rng.random() * 2e9, float(number))),
                person="p",
                runner="r",
            )
        )
    return a_state(
        *turns,
        title=rng.choice(("t", "杭州 ☀️", "a\tb")),
        title_by=rng.choice(("question", "model", "person")),
        pinned=rng.random() < 0.5,
        created_s=rng.random() * 2e9,
        updated_s=rng.random() * 2e9,
        leaf=rng.choice(turns).turn_id,
    )


def exported(*states: ConversationState) -> bytes:
    return "".join(to_json(states)).encode()


def told(turn: Turn) -> tuple[object, ...]:
    error = (type(turn.error), turn.error.values) if turn.error else None
    return (
        turn.question, turn.text, turn.reasoning, turn.system_prompt, turn.params, turn.receipt, error,
        turn.state, turn.created_s, turn.model,
    )  # fmt: skip


def shape(state: ConversationState) -> object:
    """All of a conversation but its ids: a turn's place stands in their stead."""
    places = {key: place for place, key in enumerate(state.turns)}
    head = state.head
    return (
        head.title, head.title_by, head.pinned, head.created_s, head.updated_s,
        [places[turn.turn_id] for turn in state.path()],
        {places[key]: [places[each] for each in beside] for key, beside in state.variants().items()},
        [
            (told(turn), places.get(turn.parent), places.get(turn.continues))
            for turn in state.turns.values()
        ],
    )  # fmt: skip


# JSON


@pytest.mark.parametrize("seed", range(40))
def test_what_was_exported_comes_in_as_it_was(seed: int) -> None:
    rng = random.Random(seed)
    states = [a_random_state(rng) for _ in range(5)]
    result = read(exported(*states))
    assert result.problems == []
    assert list(map(shape, result.conversations)) == list(map(shape, states))
    for before, after in zip(states, result.conversations, strict=True):
        assert after.head.key.owner == ""
        assert after.head.import_mark == f"steady-chat:{before.head.key.conversation_id}"
        assert not set(before.turns) & set(after.turns)
        assert {turn.backend for turn in after.turns.values()} == {""}
        again = read(exported(after)).conversations[0]
        assert (shape(again), again.head.import_mark) == (shape(before), after.head.import_mark)


@pytest.mark.parametrize("seed", range(20))
def test_deleted_turns_are_left_out_and_what_follows_them_stays(seed: int) -> None:
    rng = random.Random(seed)
    state = a_random_state(rng)
    gone = rng.sample(list(state.turns), len(state.turns) // 2)
    after = delete_turns(gone, 5.0)(state)
    result = read(exported(after)).conversations[0]
    assert len(result.turns) == len(state.turns) - len(gone)
    assert [told(turn) for turn in result.path()] == [told(turn) for turn in after.path()]
    beside = [len(each) for each in result.variants().values()]
    assert beside == [len(each) for each in after.variants().values()]


def test_deleted_conversations_and_whose_they_are_are_left_out() -> None:
    kept = a_state(a_turn(1, person="the person", runner="the runner"), title="kept")
    gone = a_state(a_turn(2), title="gone", deleted_s=4.0)
    text = exported(gone, kept).decode()
    document = json.loads(text)
    assert (document["format"], document["version"]) == ("steady-chat", 1)
    assert [each["title"] for each in document["conversations"]] == ["kept"]
    for secret in ("someone", "the person", "the runner", "gone"):
        assert secret not in text


def test_an_answer_under_way_comes_in_as_interrupted() -> None:
    state = a_state(a_turn(1, state="running", model="m"))
    turn = read(exported(state)).conversations[0].path()[0]
    assert (turn.state, turn.text) == ("ended", "a1")
    assert turn.receipt == Receipt("m", Finish("interrupted"))


def test_half_characters_do_not_break_the_file() -> None:
    state = a_state(replace(a_turn(1), text="a\ud800b"), title="\udfff")
    again = read(exported(state)).conversations[0]
    assert (again.head.title, again.path()[0].text) == ("\ufffd", "a\ufffdb")


def test_many_conversations_take_the_memory_of_one() -> None:
    def many() -> Iterator[ConversationState]:
        for number in range(2000):
            yield a_state(replace(a_turn(number), text="text " * 2000))

    size = 0
    next(iter(to_json(many())))
    tracemalloc.start()
    for piece in to_json(many()):
        size += len(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 20_000_000
    assert peak < 1_000_000


def test_a_ring_and_a_long_chain_are_exported() -> None:
    ring = a_state(a_turn(1, parent="turn 2"), a_turn(2, parent="turn 1"))
    assert len(read(exported(ring)).conversations[0].path()) == 2
    turns = [a_turn(0), *(a_turn(n, parent=f"turn {n - 1}") for n in range(1, 20_000))]
    chain = delete_turns([turn.turn_id for turn in turns[5:-5]], 5.0)(a_state(*turns))
    assert len(read(exported(chain)).conversations[0].path()) == 10


def test_parameters_of_the_wrong_kind_are_left_out() -> None:
    for wrong in (
        {"max_tokens": None}, {"max_tokens": 1.5}, {"temperature": True}, {"seed": 10**400},
        {"top_p": 10**400}, {"stop": [1]}, {"stop": "ab"}, {"top_k": "3"}, {"nothing": 1},
    ):  # fmt: skip
        assert params_from_json(wrong) == SamplingParams()
    receipt = receipt_from_json({"ttft_s": 10**400, "finish": ["stop"]})
    assert receipt == Receipt("", Finish("stop"))


# Markdown


def own_headings(text: str) -> list[str]:
    """What a reader takes for the document's own headings: those of the first two levels."""
    tokens, _ = parse_blocks(text)
    return [
        tokens[number + 1].content
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag in ("h1", "h2")
    ]


def test_markdown_tells_the_shown_branch() -> None:
    receipt = Receipt("Qwen_2*5", Finish("length"))
    first = a_turn(1, receipt=receipt, reasoning="hm\n\nso", error=StalledError(seconds=3))
    other = replace(a_turn(2), text="not shown")
    last = replace(a_turn(3, parent="turn 1"), question="", receipt=Receipt("m", Finish("stop")))
    text = to_markdown(a_state(first, other, last, title="On *stars*\n# and more"))
    assert text == (
        "# On \\*stars\\* \\# and more\n\n"
        "## Question\n\n*2001-09-09 01:46 UTC*\n\nq1\n\n"
        "## Answer\n\n*Qwen\\_2\\*5 · cut at the token limit*\n\n"
        "<details>\n<summary>Reasoning</summary>\n\n> hm\n>\n> so\n\n</details>\n\n"
        "a1\n\n"
        "> Error: No new text came for 3 s, so the answer was ended. "
        "What had arrived is kept; try again.\n\n"
        "## Answer\n\n*m*\n\na3\n"
    )


def test_markdown_speaks_the_language_and_the_clock_of_its_reader() -> None:
    text = to_markdown(a_state(a_turn(1)), "zh", timezone(timedelta(hours=8), "CST"))
    assert text == "# 对话\n\n## 问题\n\n*2001-09-09 09:46 CST*\n\nq1\n\n## 回答\n\na1\n"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_no_text_is_mistaken_for_the_conversation_itself(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    rng = random.Random(1)
    cuts = [len(source), *(rng.randrange(len(source) + 1) for _ in range(6))]
    for cut in cuts:
        turn = replace(a_turn(1), question=source[:cut], text=source[:cut], reasoning=source[:cut])
        text = to_markdown(a_state(turn, a_turn(2, parent="turn 1"), title="t"))
        asked = ["Question"] if source[:cut].strip() else []
        assert own_headings(text) == ["t", *asked, "Answer", "Question", "Answer"]


@pytest.mark.parametrize(
    "text",
    [
        "```\n# a", "~~~~\n# a\n~~~", "<!-- a", "<script>\n", "<pre>\na", "<?php", "<![CDATA[", "<!X",
        "$$\na", "\\[\na", "Title\n===", "a\n-", "> # a\n> b\n> ---", "- # a\n  b\n  ===", "    # code",
        "#", "# a\n\n```\n# b\n```", "| a |\n|---|\n| # |", "[a]: b", "\\", "`", "<div>", "\t# a\n#\tb",
        "1. ```\n   # a", "> ```\n> # a", "# a\x00\ud800", "a\r# b\r\nc",
    ],
)  # fmt: skip
def test_what_a_text_leaves_open_ends_with_it(text: str) -> None:
    turn = replace(a_turn(1), question=text, text=text, reasoning=text)
    whole = to_markdown(a_state(turn, a_turn(2, parent="turn 1"), title="t"))
    assert own_headings(whole) == ["t", "Question", "Answer", "Question", "Answer"]
    whole.encode()


@pytest.mark.parametrize("seed", range(10))
def test_any_mixture_of_marks_stays_inside_its_text(seed: int) -> None:
    rng = random.Random(seed)
    marks = ["# a", "===", "---", "```", "~~~", "> ", "- ", "  ", "    ", "\n", "\n\n", "<!--", "-->",
             "$$", "a", "|", "<pre>", "\t", "1. ", "## b #", "\\[", "``` x"]  # fmt: skip
    for _ in range(60):
        text = "".join(rng.choice(marks) for _ in range(rng.randrange(1, 25)))
        turn = replace(a_turn(1), question="x", text=text)
        whole = to_markdown(a_state(turn, a_turn(2, parent="turn 1"), title="t"))
        assert own_headings(whole) == ["t", "Question", "Answer", "Question", "Answer"], text


def test_code_stays_as_it_is() -> None:
    code = "```python\n# a comment\n## another\n\tx = 1  \n```"
    assert code in nested(f"# Title\n\n{code}\n\nText\n===")
    assert nested(f"# Title\n\n{code}\n\nText\n===") == f"### Title\n\n{code}\n\n### Text"
    assert nested(code) == code
    assert nested("    # indented") == "    # indented"


def test_headings_keep_their_order_of_levels() -> None:
    assert nested("# a\n## b\n### c") == "### a\n#### b\n##### c"
    assert nested("### a\n#### b") == "### a\n#### b"
    assert nested("# a\n###### b") == "### a\n###### b"


# Several in a ZIP, and what their files are called


def test_a_zip_holds_each_conversation_under_its_title() -> None:
    states = [
        a_state(a_turn(1), title="杭州天气？", updated_s=1e9),
        a_state(a_turn(2), title="杭州天气"),
        a_state(a_turn(3), title="", updated_s=9e11),
        a_state(a_turn(4), title="gone", deleted_s=1.0),
    ]
    out = io.BytesIO()
    write_markdown_zip(iter(states), out, "zh")
    with zipfile.ZipFile(io.BytesIO(out.getvalue())) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["杭州天气？.md", "杭州天气.md", "对话.md"]
        assert archive.read("杭州天气.md").decode() == to_markdown(states[1], "zh")
        assert archive.getinfo("杭州天气？.md").date_time == (2001, 9, 9, 1, 46, 40)


def test_titles_become_names_that_every_system_takes() -> None:
    for title, name in [
        ("a/b\\c:d*e?f\"g<h>i|j", "a b c d e f g h i j"), ("../../etc/passwd", "etc passwd"),
        ("CON", "_CON"), ("nul.txt", "_nul.txt"), ("com1", "_com1"), ("console", "console"),
        (" .hidden. ", "hidden"), ("a\nb\x00c", "a bc"), ("\u202egnp.exe", "gnp.exe"), ("...", ""),
        ("🧮 数学", "🧮 数学"), ("e\u0301", "é"), ("\ud800", ""),
    ]:  # fmt: skip
        assert file_name(title) == name
    assert len(file_name("漢" * 500).encode()) <= 120
    assert file_name("漢" * 500) == "漢" * 40


def test_no_name_is_given_twice_even_where_case_does_not_count() -> None:
    names = FileNames("Conversation")
    titles = ["Hi", "hi", "HI (2)", "hi", "Hi (2)", "", "?", "ﬁ", "fi", "é", "e\u0301"]
    given = [names.name(title, ".md") for title in titles]
    assert given[:4] == ["Hi.md", "hi (2).md", "HI (2) (2).md", "hi (3).md"]
    assert given[5:7] == ["Conversation.md", "Conversation (2).md"]
    assert len({unicodedata.normalize("NFKC", name.casefold()) for name in given}) == len(titles)
    many = [names.name("same", ".md") for _ in range(20_000)]
    assert len(set(many)) == 20_000


def test_every_kind_of_error_can_be_told() -> None:
    for error in filter(None, ERRORS):
        assert isinstance(error, LLMError)
        assert "> Error: " in to_markdown(a_state(a_turn(1, error=error)))
