"""What the reader sees: blocks and the whole alike, the model's text and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from llm.blocks import BlockSplitter
from llm.literal_markdown import literal
from llm.open_tail import presentable
from llm.plain_markdown import plain

pytestmark = pytest.mark.browser

PAGE = Path(__file__).parent / "pages" / "markdown_page.py"
CORPUS = {
    path.stem: path.read_bytes().decode()
    for path in sorted((Path(__file__).parents[1] / "data" / "markdown").glob("*.md"))
}
Draw = Callable[[dict[str, list[str]]], Page]

NORMALISED = """
key => {
  const clean = node => {
    if (node.nodeType === 3) return node.textContent.replace(/\\s+/g, ' ');
    if (node.nodeType !== 1 || node.matches('[data-testid=stHeaderActionElements]')) return '';
    const inner = [...node.childNodes].map(clean).join('');
    if (node.tagName === 'SPAN' && !inner && /font-size/.test(node.getAttribute('style') || ''))
      return '';
    const attributes = [...node.attributes]
      .filter(a => !/^(id|class|aria-labelledby|style|data-heading-text)$/.test(a.name))
      .map(a => ` ${a.name}="${a.value}"`).join('');
    return `<${node.tagName.toLowerCase()}${attributes}>${inner}</>`;
  };
  const containers = document.querySelectorAll(
    `.st-key-${key} [data-testid=stMarkdownContainer]`);
  return [...containers].flatMap(c => [...c.childNodes].map(clean))
    .map(s => s.trim()).filter(Boolean).join(' ');
}
"""
TEXT = """
key => [...document.querySelectorAll(`.st-key-${key} [data-testid=stMarkdownContainer]`)]
  .map(c => c.innerText).join('\\n')
"""


@pytest.fixture(scope="module")
def draw(
    chromium: Browser, streamlit_server: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Draw]:
    """Draws `{key: [markdown, …]}` on one page and waits until all of it is there."""
    address = streamlit_server(PAGE)
    context = chromium.new_context()

    def go(documents: dict[str, list[str]]) -> Page:
        file = tmp_path_factory.mktemp("documents") / "documents.json"
        file.write_text(json.dumps(documents))
        page = context.new_page()
        page.goto(f"{address}/?file={file}")
        page.get_by_text("all drawn").wait_for(timeout=60_000)
        page.wait_for_function(
            "() => !document.querySelector('[data-testid=stSkeleton]')", timeout=60_000
        )
        return page

    yield go
    context.close()


def in_blocks(text: str) -> list[str]:
    return [plain(block) for block in BlockSplitter().update(text, done=True).settled]


@pytest.fixture(scope="module")
def corpus_page(draw: Draw) -> Page:
    documents = {}
    for name, text in CORPUS.items():
        documents[f"whole-{name}"] = [plain(text)]
        documents[f"split-{name}"] = in_blocks(text)
    return draw(documents)


@pytest.mark.parametrize("name", CORPUS)
def test_blocks_look_as_the_whole_does(corpus_page: Page, name: str) -> None:
    whole = corpus_page.evaluate(NORMALISED, f"whole-{name}")
    split = corpus_page.evaluate(NORMALISED, f"split-{name}")
    assert whole == split
    assert whole or not CORPUS[name].strip()


LITERAL = [
    "Colours :red[red] :blue-background[b] :small[s] :shimmer[x] :help[h] :orange-badge[o] end",
    ":color[x]{foreground=red} and :unknown[label]{a=b}",
    ":smile: :+1: :-1: :100: :streamlit: :material/home: :material_home: :man-woman-girl-boy:",
    "a -> b <- c <-> d -- e >= f <= g ~= h",
    "->",
    "-> start and end <-",
    "12:30:45 1:100:2 std::vector::iterator key:value a::b ::: x:",
    "::leaf[x]{y}",
    ":::note",
    "时间:红[标签] 中文:smile:中文",
    "path C:\\dir:x and a:b:c:d",
    '<b onclick="alert(1)">bold</b> text <br>',
    "<script>window.hacked = 1</script>",
    "US$5 and $10, $HOME/bin:$PATH",
    "from 5$ to 6$ and $ 7 $",
    "x < y and y > z & w",
    "http://a.b:80/c:smile:d http://localhost:8501 https://x.y/z:red[q]",
    "mailto:a@b.co and ftp:x",
    "# no heading".replace("# ", "#"),
    "[1] and [x]: y and [a:red]",
    "footnote-like [^1] text",
    "[^1]: :red[note] :smile:",
    "5 * 3 * 2 and snake_case_name",
    "\u2014 -–- ---- <!-- - -->",
    "!not [an] image",
]


def test_what_only_streamlit_understands_shows_as_it_was_written(draw: Draw) -> None:
    code = "`x::y:z: :smile:` "  # makes Streamlit look for emoji names
    documents = {f"literal-{n}": [plain(text)] for n, text in enumerate(LITERAL)}
    documents |= {f"coded-{n}": [plain(code + text)] for n, text in enumerate(LITERAL)}
    page = draw(documents)
    for n, text in enumerate(LITERAL):
        assert page.evaluate(TEXT, f"literal-{n}") == text
        if not text.startswith(("<script", "::", "->")):
            assert page.evaluate(TEXT, f"coded-{n}") == "x::y:z: :smile: " + text


NAMES = [
    "**bold** [x](http:) $x^2$ `c` :red[q]",
    "#tag ~~a~~ | b",
    "1. one",
    "- item",
    "_a_b__c__ *d*",
    "SmolLM2-135M-Instruct.Q4_1",
    "127.0.0.1:5001 a:100:b c:1",
    r"\(x\) \[y\] a\b",
    "<script>alert(1)<&> &amp; :smile: -> --",
    "www.a.co http://a.co/b_c x@a.co https://a.co",
    "![i](http://a.co/i.png) $$x$$",
]


def test_nothing_of_a_name_is_markup_alone_or_in_a_sentence(draw: Draw) -> None:
    documents = {f"alone-{n}": [f"**{literal(name)}**  \nx"] for n, name in enumerate(NAMES)}
    documents |= {f"first-{n}": [plain(f"{literal(name)} · y")] for n, name in enumerate(NAMES)}
    documents |= {
        f"within-{n}": [plain(f"The model “{literal(name)}” is (y) **z**.")]
        for n, name in enumerate(NAMES)
    }
    page = draw(documents)
    for n, name in enumerate(NAMES):
        told = {
            key: page.evaluate(TEXT, f"{key}-{n}").replace("\u2060", "")
            for key in ("alone", "first", "within")
        }
        assert told == {
            "alone": f"{name}\nx",
            "first": f"{name} · y",
            "within": f"The model “{name}” is (y) z.",
        }
    assert page.locator(".stMarkdown a, .stMarkdown img, .stMarkdown code, .katex").count() == 0


def test_nothing_only_streamlit_understands_is_left_inside_markup(draw: Draw) -> None:
    text = (
        "# Head :smile: :red[x] -> y\n\n- item :smile: -> x\n\n> **bold :red[x]** :+1:\n\n"
        "| :smile: | -> |\n|---|---|\n| :red[a] | `->` |\n\n[link :smile: -> x](http://a.b/:smile:)\n"
    )
    page = draw({"markup": [plain(text)]})
    shown = page.evaluate(TEXT, "markup")
    assert "Head :smile: :red[x] -> y" in shown
    assert "item :smile: -> x" in shown
    assert "bold :red[x] :+1:" in shown
    assert re.search(r":smile:\s+->\s+:red\[a\]\s+->", shown)
    assert "link :smile: -> x" in shown
    assert page.locator(".st-key-markup a[href='http://a.b/:smile:']").count() == 1


def test_raw_html_and_addresses_of_the_model_do_nothing(draw: Draw, chromium: Browser) -> None:
    text = (
        "<script>window.hacked = 1</script>\n\n<img src=x onerror='window.hacked = 2'>\n\n"
        "inline <img src=x onerror='window.hacked = 3'> end\n\n[x](javascript:window.hacked=4)\n\n"
        "[y][r]\n\n[r]: javascript:window.hacked=5\n\n<javascript:window.hacked=6>\n\n"
        "![secret](http://127.0.0.1:9/leak?conversation) ![](http://127.0.0.1:9/leak2)\n\n"
        "[![badge](http://127.0.0.1:9/leak3)](http://ok.example)\n\n![ref][i]\n\n"
        "[i]: http://127.0.0.1:9/leak4\n\n"
        "<table><tr><td>cell</td></tr></table>\n\n"
        "note[^1] note[^2] note[^3]\n\n[^1]: ![f](http://127.0.0.1:9/leak5)\n\n"
        "[^2]: See\n\n    ![f](http://127.0.0.1:9/leak6) :red[x]\n\n"
        "[^3]: ![f]( http://127.0.0.1:9/leak7 )\n"
    )
    context = chromium.new_context()
    page = draw({"hostile": [plain(text)]})
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.reload()
    page.get_by_text("all drawn").wait_for()
    shown = page.evaluate(TEXT, "hostile")
    assert page.evaluate("window.hacked") is None
    assert "<script>window.hacked = 1</script>" in shown
    assert "<img src=x onerror='window.hacked = 3'>" in shown
    assert "<td>cell</td>" in shown
    assert page.locator(".st-key-hostile [href^=javascript]").count() == 0
    assert page.locator(".st-key-hostile img").count() == 0
    assert (
        page.locator(".st-key-hostile a[href='http://127.0.0.1:9/leak?conversation']").count() == 1
    )
    assert page.locator(".st-key-hostile a[href='http://ok.example']").inner_text() == "badge"
    assert not [url for url in requested if "leak" in url]
    context.close()


FORMULAS = {
    "dollar": ("one $a^2$ two", 1, 0),
    "round": ("one \\( a^2 \\) two \\(b\\)", 2, 0),
    "square": ("\\[ \\int_0^1 x\\,dx \\]", 1, 1),
    "square-lines": ("text\n\\[\n\\int_0^1 x\\,dx\n\n= 1\n\\]\nmore", 1, 1),
    "double": ("$$x = 1$$", 1, 1),
    "double-lines": ("$$x\n= 1$$\nafter", 1, 1),
    "inline-display": ("so \\[x = 1\\] holds", 1, 0),
    "in-list": ("- a\n\n  \\[\n  x\n  \\]\n- \\(b\\)", 2, 1),
    "in-quote": ("> $$\n> x\n> $$", 1, 1),
    "in-table": ("| a |\n|---|\n| \\(x\\) |", 1, 0),
    "over-lines": ("one $a +\nb$ two", 1, 0),
    "with-dollar": ("cost \\(\\$5 \\cdot x\\)", 1, 0),
    "with-text": ("\\(\\text{if $x$} y\\)", 1, 0),
    "code": ("`\\(a\\)` and `$x$`\n\n```\n\\[x\\]\n$$y$$\n```", 0, 0),
    "money": ("from $5 to $10 and 3$", 0, 0),
    "open": ("$$\nx = 1", 0, 0),
}


def test_formulas_show_as_formulas_and_only_they(draw: Draw) -> None:
    page = draw({f"formula-{name}": [plain(case[0])] for name, case in FORMULAS.items()})
    found = {
        name: (
            page.locator(f".st-key-formula-{name} .katex").count(),
            page.locator(f".st-key-formula-{name} .katex-display").count(),
        )
        for name in FORMULAS
    }
    assert found == {name: case[1:] for name, case in FORMULAS.items()}
    assert page.locator(".katex-error").count() == 0


def test_a_mermaid_fence_shows_its_code(draw: Draw) -> None:
    page = draw({"mermaid": [plain("```mermaid\ngraph TD; A-->B;\n```")]})
    assert "graph TD; A-->B;" in page.evaluate(TEXT, "mermaid")
    assert page.locator(".st-key-mermaid svg[id^=mermaid]").count() == 0


STREAMED = [
    "Some **bold text**, *it* and `code` with a [link](http://x.y/z) and ~~old~~ text.\n\n"
    "- **One**: `a`\n- *Two*\n\n  \\(a^2\\)\n\n# Head **b**\n",
    "| A | **B** |\n|---|:-:|\n| `x` | *y* |\n\nThen $x^2$ and\n\n\\[\nz\n\\]\n\n1. **x `y` z**\n",
    "你好，**世界**：`代码`。[链接](http://x.y) 👨‍👩‍👧 和 🇨🇳。\n\nSetext\n===\n\n***both*** __two__ _one_.\n",
]


@pytest.mark.parametrize("number", range(len(STREAMED)))
def test_no_prefix_of_an_answer_shows_raw_markup(draw: Draw, number: int) -> None:
    text = STREAMED[number]
    documents = {}
    splitter = BlockSplitter()
    for end in range(1, len(text)):
        split = splitter.update(text[:end], done=False)
        tail = plain(presentable(split.tail))
        documents[f"prefix-{number}-{end}"] = [tail] if tail else []
    page = draw(documents)
    for end in range(1, len(text)):
        shown = page.evaluate(TEXT, f"prefix-{number}-{end}")
        assert not re.search(r"[*`\[\]~$|\\#_]|==|--|&", shown), (text[:end], shown)
        assert not re.search("👨(?!\u200d👩\u200d👧)|🇨(?!🇳)", shown), (text[:end], shown)
    assert page.locator(".katex-error").count() == 0
