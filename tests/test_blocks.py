"""Settled blocks: what is finished stays, and all together is the text."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from llm.blocks import BlockSplitter, Split

CORPUS = {
    path.stem: path.read_bytes().decode()
    for path in sorted((Path(__file__).parent / "data" / "markdown").glob("*.md"))
}
WITH_DEFINITIONS = {
    name for name, text in CORPUS.items() if re.search(r"^[> -]*\[[^^\]]+\]:", text, re.M)
}
# A definition is put before the blocks that use it, also after they were settled.
WITHOUT_DEFINITIONS = [name for name in CORPUS if name not in WITH_DEFINITIONS]
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def streamed(text: str, chunk_chars: int) -> list[Split]:
    splitter = BlockSplitter()
    splits = [splitter.update(text[:end], done=False) for end in range(0, len(text), chunk_chars)]
    return [*splits, splitter.update(text, done=True)]


def rendered(source: str) -> str:
    return PARSER.render(source).strip()


@pytest.mark.parametrize("chunk_chars", [1, 3, 7])
@pytest.mark.parametrize("name", WITHOUT_DEFINITIONS)
def test_settled_blocks_never_change(name: str, chunk_chars: int) -> None:
    settled: tuple[str, ...] = ()
    *splits, last = streamed(CORPUS[name], chunk_chars)
    for split in splits:
        assert split.settled[: len(settled)] == settled
        settled = split.settled
    assert last.settled[: len(settled)] == settled


@pytest.mark.parametrize("chunk_chars", [1, 3, 7])
@pytest.mark.parametrize("name", WITHOUT_DEFINITIONS)
def test_settled_blocks_and_tail_are_the_text(name: str, chunk_chars: int) -> None:
    text = CORPUS[name]
    splitter = BlockSplitter()
    for end in range(0, len(text) + chunk_chars, chunk_chars):
        split = splitter.update(text[:end], done=False)
        shown = text[:end].replace("\r\n", "\n").removesuffix("\r").replace("\r", "\n")
        assert "".join(split.settled) + split.tail == shown


@pytest.mark.parametrize("chunk_chars", [1, 3, 7, 10**6])
@pytest.mark.parametrize("name", CORPUS)
def test_blocks_one_by_one_render_as_the_whole(name: str, chunk_chars: int) -> None:
    text = CORPUS[name]
    last = streamed(text, chunk_chars)[-1]
    assert last.tail == ""
    blocks = [rendered(block) for block in last.settled]
    if "formulas" in name or name == "answer":  # a formula is one block here, not in the renderer
        assert "".join(last.settled) == text
    else:
        assert "\n".join(filter(None, blocks)) == rendered(text)


@pytest.mark.parametrize("name", CORPUS)
def test_the_pace_of_arrival_does_not_matter(name: str) -> None:
    assert len({streamed(CORPUS[name], chunk)[-1] for chunk in (1, 2, 5, 11, 10**6)}) == 1


def test_large_open_blocks_settle_as_small_ones_do() -> None:
    rng = random.Random(5)
    shapes = ["- item {}\n", "{}. item\n", "word {}\n", "| {} | b |\n", "    code {}\n", "> q {}\n"]
    for shape in shapes:
        head = "| a | b |\n|---|---|\n" if shape.startswith("|") else ""
        body = head + "".join(shape.format(n) for n in range(120))
        for ending in (
            "\nend\n",
            "end\n",
            "- x\n\ny\n",
            "===\nz\n",
            "| a |\n|---|\n",
            "```\nx\n",
            "---\n\n- b\n",
        ):
            text = body + ending + "\nlast\n"
            splitter = BlockSplitter()
            end = 0
            while end < len(text):
                end += rng.randint(1, 90)
                splitter.update(text[:end], done=False)
            assert splitter.update(text, done=True) == BlockSplitter().update(text, done=True)


def test_random_joins_of_the_corpus_render_as_the_whole() -> None:
    rng = random.Random(7)
    lines = [
        line
        for name, text in CORPUS.items()
        if "formula" not in name
        for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ]
    lines = [line for line in lines if "[^" not in line and "$" not in line and "\\[" not in line]
    for _ in range(300):
        text = "\n".join(rng.choice(lines) for _ in range(rng.randint(2, 14)))
        splits = streamed(text, rng.randint(1, 9))
        blocks = [rendered(block) for block in splits[-1].settled]
        assert "\n".join(filter(None, blocks)) == rendered(text), text


def test_a_late_definition_reaches_the_blocks_that_use_it() -> None:
    splitter = BlockSplitter()
    before = splitter.update("Uses [x] here.\n\nplain\n\nmore\n\n", done=False)
    after = splitter.update("Uses [x] here.\n\nplain\n\nmore\n\n[x]: /u\n\nend\n", done=True)
    assert before.settled[0] == "Uses [x] here.\n\n"
    assert 'href="/u"' in rendered(after.settled[0])
    assert after.settled[1] == before.settled[1]


def test_the_first_of_two_definitions_counts_for_every_block() -> None:
    text = "[x]: /first\n\na [x]\n\nb [x]\n\n[x]: /second\n\n[x] end\n"
    done = BlockSplitter().update(text, done=True)
    assert "/second" not in "".join(rendered(block) for block in done.settled)


def test_a_definition_in_code_is_none() -> None:
    done = BlockSplitter().update("```\n[x]: /u\n```\n\n[x]\n", done=True)
    assert done.settled[-1] == "[x]\n"


def test_what_looks_like_a_footnote_is_a_paragraph_like_any_other() -> None:
    text = "Text[^1].\n\n[^1]: ![f](http://host/x.png)\n\nMore[^1].\n"
    assert BlockSplitter().update(text, done=True).settled == (
        "Text[^1].\n\n",
        "[^1]: ![f](http://host/x.png)\n\n",
        "More[^1].\n",
    )


def test_a_text_that_does_not_continue_starts_over() -> None:
    splitter = BlockSplitter()
    splitter.update("a\n\nb\n\nc", done=False)
    assert splitter.update("other\n\ntext", done=False) == Split(("other\n\n",), "text")
    assert splitter.update("", done=False) == Split()
    assert splitter.update("again", done=True) == Split(("again",), "")
    assert splitter.update("again and", done=False) == Split((), "again and")


def test_an_open_formula_stays_with_the_paragraph_it_may_fall_back_to() -> None:
    splitter = BlockSplitter()
    text = "text\n$$\nx = 1\n"
    assert splitter.update(text, done=False).settled == ()
    assert len(splitter.update(text + "$$\n\nend", done=False).settled) == 2
    assert BlockSplitter().update(text, done=True).settled == (text,)


def test_a_block_settles_as_soon_as_the_next_has_begun() -> None:
    for next_block in ("Next", "- item", "# Head", "**Bold", "1. one x", "下"):
        split = BlockSplitter().update("First.\n\n" + next_block, done=False)
        assert split.settled == ("First.\n\n",), next_block


def test_definitions_deep_in_a_long_list_count() -> None:
    text = "[early]\n\n- [early]: /u\n" + "- item\n" * 200 + "- [late]: /v\n\nsee [early] [late]\n"
    splits = streamed(text, 50)
    assert 'href="/u"' in rendered(splits[-1].settled[0])
    assert splits[-1] == BlockSplitter().update(text, done=True)
    assert 'href="/u"' in rendered(splits[-1].settled[-1])


def test_a_very_long_list_is_settled_in_parts_where_that_is_asked_for() -> None:
    text = "".join(f"{n}. item [x]\n" for n in range(1, 2_000)) + "\nend\n\n[x]: /u\n"
    splitter = BlockSplitter(max_list_chars=3_000)
    for end in range(0, len(text), 40):
        split = splitter.update(text[:end], done=False)
        assert len(split.tail) < 4_000
    done = splitter.update(text, done=True)
    assert len(done.settled) > 5
    assert '<ol start="2' in rendered(done.settled[1])
    assert sum(rendered(block).count('<li>item <a href="/u">') for block in done.settled) == 1_999


def test_twelve_thousand_tokens_cost_little() -> None:
    text = (CORPUS["answer"] * 100)[:50_000]
    splitter = BlockSplitter()
    started = time.process_time()
    for end in range(0, len(text), len(text) // 600):
        splitter.update(text[:end], done=False)
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    "text",
    [
        "ABCabc" * 10_000,
        "word and word\n" * 4_500,
        "- item\n" * 9_000,
        "```py\n" + "x = 1\n" * 10_000,
        "| a | b |\n|---|---|\n" + "| c | d |\n" * 6_000,
        "$$\n" + "x = 1\n" * 10_000,
        "\\[\n" * 20_000,
        "[a]: x\n" * 8_000,
        "[" * 60_000,
        "> " * 30_000,
    ],
    ids=lambda text: text[:8],
)
def test_a_tail_of_sixty_thousand_characters_is_split_quickly(text: str) -> None:
    splitter = BlockSplitter()
    started = time.process_time()
    for end in range(0, len(text), len(text) // 300):
        splitter.update(text[:end], done=False)
    assert time.process_time() - started < 3.0  # 10 ms an update


@pytest.mark.parametrize("marker", ["-", "1."])
@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_where_a_long_list_is_cut_depends_on_the_text_alone(marker: str, gap: str) -> None:
    items = gap.join(f"{marker} item {number} " + "word " * 9 for number in range(200))
    text = f"Before.\n\n{items}\n\nAfter.\n\n- short\n- list\n"
    ways = []
    for chunk_chars in (1, 7, 100, 3000, 10**6):
        splitter = BlockSplitter(max_list_chars=2000)
        for end in range(0, len(text), chunk_chars):
            splitter.update(text[:end], done=False)
        ways.append(splitter.update(text, done=True).settled)
    assert "".join(ways[0]) == text
    assert len(ways[0]) > 5
    assert all(way == ways[0] for way in ways)


@pytest.mark.parametrize("name", CORPUS)
def test_streamed_and_whole_texts_are_split_alike(name: str) -> None:
    whole = BlockSplitter(max_list_chars=100).update(CORPUS[name], done=True)
    splitter = BlockSplitter(max_list_chars=100)
    for end in range(len(CORPUS[name])):
        splitter.update(CORPUS[name][:end], done=False)
    assert splitter.update(CORPUS[name], done=True) == whole
