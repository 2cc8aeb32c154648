r"""Rewrites Markdown so that Streamlit shows what the model wrote, no less and no more.

Streamlit's Markdown knows things that no model means: colours and badges (`:red[…]`), emoji and
icon names (`:smile:`, `:material/home:`), arrows and dashes for ` -> ` and ` -- `. A text with
colons in the right places loses words by it. Here these are escaped, and four things are turned
into what Streamlit can show: `\( \)` and `\[ \]` formulas become `$` formulas, a lone `$` stays a
dollar, an image becomes a link (its address is the model's, and fetching it could give away the
conversation), and a Mermaid fence stays code.

CommonMark, GFM and raw HTML (which Streamlit shows as text) are left as they are.

Source: the front end of Streamlit 1.67, StreamlitMarkdown.tsx, and micromark-extension-directive.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from markdown_it.token import Token

from llm.inline_rewriting import Edit, inline_edits
from llm.markdown_grammar import parse_blocks

GUARD = "[\u2063]: #\n\n"
"""A definition that draws nothing, put before a text whose first line is indented.

`st.markdown` dedents and strips what it is given; indented code would become a paragraph.
"""

_ICON_IN_CODE = ":\u2060material/"
_MERMAID = re.compile(r"mermaid(?![A-Za-z0-9_])", re.IGNORECASE)
_CELL_BORDER = re.compile(r"\\[\\|]|(\|)")
_CONTAINER_MARK = re.compile(r"[^>\t]")
_DOLLARS = re.compile(r"\$+")

Span = tuple[int, int]


def plain(source: str) -> str:
    """Rewrite one Markdown document or block for `st.markdown`.

    Takes time in proportion to the length of `source`. Where ":material/" stands in code or in an
    address, which Streamlit would change blindly, an invisible word joiner (U+2060) is put in.

    Args:
        source: what the model wrote.

    Returns:
        Markdown that shows the same, to be given to `st.markdown` as it is.
    """
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    tokens, env = parse_blocks(source)
    labels = env.get("references", {})
    edits: list[Edit] = []
    in_table = False
    for token in tokens:
        if token.type == "math_block":
            edits.append(_formula(source, token))
        elif token.type == "fence" and _MERMAID.match(token.info.strip()):
            edits.append(_unnamed_fence(source, token))
        elif token.type == "tr_open":
            for span in token.meta["spans"]:
                for cell in _cells(source, span):
                    edits.extend(_moved(source, [cell], labels))
        elif token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"
        elif token.type == "inline" and not in_table:
            edits.extend(_moved(source, token.meta["spans"], labels))
    text = _apply(source, edits).replace(":material/", _ICON_IN_CODE)
    return _kept_indent(text)


def _moved(source: str, spans: list[Span], labels: Iterable[str]) -> list[Edit]:
    """The edits of an inline content that stands in `spans`, one a line, as edits of `source`."""
    text = "\n".join(source[start:end] for start, end in spans)
    edits = inline_edits(text, frozenset(labels))
    if not edits:
        return []
    offsets = [0]
    for start, end in spans[:-1]:
        offsets.append(offsets[-1] + end - start + 1)

    def place(position: int) -> int:
        line = bisect_right(offsets, position) - 1
        return spans[line][0] + position - offsets[line]

    return [Edit(place(edit.start), place(edit.end), edit.new) for edit in edits]


def _cells(source: str, row: Span) -> list[Span]:
    borders = [m.start() for m in _CELL_BORDER.finditer(source, *row) if m[1]]
    starts = [row[0], *(border + 1 for border in borders)]
    return list(zip(starts, [*borders, row[1]], strict=True))


def _formula(source: str, token: Token) -> Edit:
    """A display formula as remark-math reads it: the dollars alone on their lines."""
    start, end = token.meta["span"]
    line_start = source.rfind("\n", 0, start) + 1
    indent = _CONTAINER_MARK.sub(" ", source[line_start:start])
    lines: list[str] = token.meta["lines"]
    longest = max((len(run) for line in lines for run in _DOLLARS.findall(line)), default=0)
    fence = "$" * max(2, longest + 1)
    return Edit(start, end, f"\n{indent}".join([fence, *lines, fence]))


def _unnamed_fence(source: str, token: Token) -> Edit:
    """Change the language's name, so that Streamlit shows the code and draws no diagram."""
    line_start = token.meta["spans"][0][0]
    name = _MERMAID.search(source, line_start)
    at = name.start() if name else line_start
    return Edit(at, at, "_")


def _apply(source: str, edits: list[Edit]) -> str:
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        pieces += (source[position : edit.start], edit.new)
        position = edit.end
    return "".join([*pieces, source[position:]])


def _kept_indent(text: str) -> str:
    lines = text.lstrip("\n")
    while lines[:1] in (" ", "\t") and not lines.partition("\n")[0].strip():
        lines = lines.partition("\n")[2].lstrip("\n")
    return GUARD + lines if lines[:1] in (" ", "\t") else lines
