"""Plain Markdown: Streamlit shows what the model wrote."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from llm.blocks import BlockSplitter
from llm.plain_markdown import GUARD, plain

CORPUS = {
    path.stem: path.read_bytes().decode()
    for path in sorted((Path(__file__).parent / "data" / "markdown").glob("*.md"))
}
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
N = ":small[]"

UNCHANGED = [
    "Plain text, with a colon: and a https://a.b:80/c?d=e:f address.\n",
    "---\n\na\n\n***\n\nsetext\n--\n",
    "| a | b |\n| -- | :-: |\n| c | d |\n",
    "> quote\n>= not an arrow here\n",
    "[text](http://a.b/c:d 'ti:tle') and <http://a.b/c:d> and <ab:cd>\n",
    "`:red[x] -> \\(y\\) $z$` and ``a ` :b``\n",
    "```py\nd = {a:b, '$x$': \":smile:\"}  # -> \\[ ![a](b)\n```\n",
    "<div class='a:b'>\n:red[x] $y$ ![i](j)\n</div>\n",
    "text <b data-x=':red[y]'> text\n",
    "$a_1 + b$ and $$c$$ too\n",
    "[label:x]\n\n[label:x]: http://a.b:80/\n",
    "text[^1] and [^2](http://a.b)\n",
    "- [ ] task\n- [x] done\n",
    "a --> b, x->y, p<-q, i--, `--`\n",
    "12. item\n\n        code: :here:\n",
    "\\:red[x] \\$5 \\\\(a\\\\) \\![a](b)\n",
]


@pytest.mark.parametrize("text", UNCHANGED)
def test_plain_markdown_is_left_alone(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":red[x]", "\\:red[x]"),
        ("> - **:red[x]**", "> - **\\:red[x]**"),
        ("a\n:red[x]", "a\n\\:red[x]"),
        (":smile:", f"\\:{N}smile\\:"),
        ("12:30", "12\\:30"),
        ("::leaf", "\\:\\:leaf"),
        (":::box\nx\n:::", "\\:\\:\\:box\nx\n\\:\\::"),
        ("中文:标签[x]", "中文\\:标签[x]"),
        ("a -> b", f"a -{N}> b"),
        ("a <-> b", f"a <{N}-{N}> b"),
        ("a -&gt; b", f"a -{N}&gt; b"),
        ("a \\-> b", f"a \\-{N}> b"),
        ("**->**", f"**-{N}>**"),
        ("a -- b", f"a -{N}- b"),
        ("a >= b", f"a >{N}= b"),
        ("cost $5 or $6", "cost \\$5 or \\$6"),
        ("$ x $", "\\$ x \\$"),
        ("\\(a\\)", "$a$"),
        ("\\( a\n b \\)", "$a b$"),
        ("> x \\(a\n> b\\)", "> x $a b$"),
        ("\\[ a \\]", "$$\na\n$$"),
        ("> \\[\n> a\n>\n> b\n> \\]", "> $$\n> a\n> \n> b\n> $$"),
        ("- $$a$$", "- $$\n  a\n  $$"),
        ("x \\[a\\] y", "x $\\displaystyle a$ y"),
        ("$a\nb$", "$a b$"),
        ("\\(\\$5\\)", "$$\\$5$$"),
        ("![a](b)", "\\![a](b)"),
        ("![](b)", "\\![image](b)"),
        ("![a][r]\n\n[r]: /u", "\\![a][r]\n\n[r]: /u"),
        ("[![a](b)](c)", "[a](c)"),
        ("```mermaid\nx\n```", "```_mermaid\nx\n```"),
        ("> ~~~ Mermaid x\n> y", "> ~~~ _Mermaid x\n> y"),
        ("`a:material/b`", "`a:\u2060material/b`"),
        ("    code", GUARD + "    code"),
        ("\n \n    code", GUARD + "    code"),
        ("[http://a.b:80](c)", "[http://a.b\\:80](c)"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_what_streamlit_would_change_is_rewritten(text: str, expected: str) -> None:
    assert plain(text) == expected


@pytest.mark.parametrize("name", [n for n in CORPUS if "formula" not in n])
def test_rewriting_keeps_the_blocks_as_they_are(name: str) -> None:
    def shape(source: str) -> list[str]:
        return [token.type for token in PARSER.parse(source) if not token.hidden]

    text = CORPUS[name].replace("\r\n", "\n").replace("\r", "\n")
    if name != "answer":  # its formula becomes lines of its own
        assert shape(plain(text)) == shape(text)


@pytest.mark.parametrize("name", CORPUS)
def test_blocks_are_rewritten_as_the_whole_is(name: str) -> None:
    text = CORPUS[name]
    blocks = BlockSplitter().update(text, done=True).settled
    joined = "".join(plain(block).removeprefix(GUARD) for block in blocks)
    if not name.startswith("references"):
        assert joined.split() == plain(text).removeprefix(GUARD).split()


@pytest.mark.parametrize(
    "unit",
    [
        *("[", "]", "`", "$", "*", ":", "<", "!", "\\", "\\(", "\\[", "$a ", "`a``", "<a ", "<!--"),
        *("[a](", "![a](b)", "[![a](b)](c)", "http://", "a:b ", " -> ", ":a:", "&", "> ", "x\n"),
    ],
)
def test_a_hundred_thousand_characters_of_markup_take_linear_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    started = time.process_time()
    plain(text)
    assert time.process_time() - started < 2.0


def test_any_cut_of_the_corpus_can_be_rewritten() -> None:
    for text in CORPUS.values():
        for end in range(0, len(text), 5):
            plain(text[:end])


@pytest.mark.parametrize("image", ["![f](http://h/x)", "![f]( http://h/x)", "![f][r]"])
def test_no_footnote_is_ever_defined_so_none_can_hold_an_image(image: str) -> None:
    written = f"x[^1]\n\n[^1]: {image}\n\n> [^2]: {image}\n\n- [^a\\]b]: {image}\n  [^3]: {image}\n"
    shown = plain(written)
    assert "[^" not in shown.replace("\\[^", "").replace("x[^1]", "")
    assert "![" not in shown.replace("\\![", "")
