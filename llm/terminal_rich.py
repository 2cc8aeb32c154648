"""An answer as Markdown on a terminal, drawn while it is written.

Finished blocks are printed once, above, and belong to the scrollback from then on; only the block
that is still open is drawn again, in a region at the bottom that is never higher than the screen.
Of a block that is higher its end is shown, and all of it when it is finished.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TextIO

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markdown import CodeBlock, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from llm.blocks import BlockSplitter
from llm.job import Snapshot
from llm.terminal_text import Trickle, clean

MIN_INTERVAL_S = 1 / 15
DUTY = 0.25
"""Frames a second at most, and the share of this program's time that drawing may take."""

MAX_LIST_CHARS = 2000
"""A longer list is finished in parts, so that the open block stays small."""

_FORMULA = re.compile(
    r"\\\(.{1,1000}?\\\)|\\\[.{1,1000}?\\\]|\$\$.{1,1000}?\$\$"
    r"|\$(?![\s$])[^$]{0,1000}?(?<![\s\\])\$(?!\d)",
    re.DOTALL,
)


def _formula(state: StateInline, silent: bool) -> bool:
    """Let formulas be as they are written: a backslash in one escapes nothing."""
    found = _FORMULA.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("text", "", 0).content = found[0]
    state.pos = found.end()
    return True


_THEME = Theme({"markdown.code": "bold cyan", "markdown.h1": "bold underline"})
MAX_NESTING = 60
_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable(
    ["strikethrough", "table"]
)
"""Tags are text: rich leaves out what is HTML, and `List<String>` would lose half its name."""
_PARSER.inline.ruler.before("escape", "formula", _formula)


class RichAnswer:
    """Draws one answer.

    Thread-safety: none; drawn by the thread that asked.
    """

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = Console(file=out, force_terminal=True, highlight=False, theme=_THEME)
        self._reasoning = Trickle(self._think)
        self._clock = clock
        self._next_s = clock()
        self._live: Live | None = None
        self._any_printed = False
        self._start()

    @property
    def delay_s(self) -> float:
        """Seconds until the next frame may be drawn."""
        return max(0.0, self._next_s - self._clock())

    def shows(self, answer: Snapshot) -> bool:
        """Whether there is something of it to be seen here."""
        return bool(answer.text.strip() or answer.reasoning.strip())

    def draw(self, answer: Snapshot) -> None:
        """Draw what is new."""
        began_s = self._clock()
        if not answer.text.startswith(self._text):  # it turned out to be reasoning
            self._leave_region()
            self._start()
        if self._live is None:  # later thoughts would stand in the middle of the answer
            self._reasoning.grow(answer.reasoning)
        if answer.text.strip():
            self._reasoning.end()
            self._any_printed = self._any_printed or self._reasoning.begun
            self._draw_text(answer.text, answer.done)
        took_s = self._clock() - began_s
        self._next_s = began_s + max(MIN_INTERVAL_S, took_s / DUTY)

    def end(self) -> None:
        """Print what is still open, and leave the terminal as it was."""
        self._reasoning.end()
        if self._text.strip():
            self._draw_text(self._text, True)
        self._leave_region()

    def _start(self) -> None:
        self._splitter = BlockSplitter(max_list_chars=MAX_LIST_CHARS)
        self._text = ""
        self._printed = 0
        self._any_printed = False  # nothing to be set apart from

    def _think(self, piece: str) -> None:
        self._console.print(Text(piece, style="dim"), end="", soft_wrap=True)

    def _draw_text(self, text: str, done: bool) -> None:
        self._text = text
        split = self._splitter.update(clean(text), done)
        if self._live is None:
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                vertical_overflow="crop",
            )
            self._live.start()
            self._console.show_cursor(True)  # a program that is killed would leave it hidden
        with self._console:  # all of it in one write
            if len(split.settled) > self._printed:
                self._live.update(_Lines(), refresh=True)
                for source in split.settled[self._printed :]:
                    self._print(self._lines(source))
                self._printed = len(split.settled)
            tail = self._lines(split.tail)
            room = max(1, self._console.size.height - 2)
            self._live.update(_Lines(self._spaced(tail)[-room:]), refresh=True)

    def _print(self, lines: list[list[Segment]]) -> None:
        if lines:
            self._console.print(_Lines(self._spaced(lines)))
            self._any_printed = True

    def _spaced(self, lines: list[list[Segment]]) -> list[list[Segment]]:
        """With an empty line between it and what stands above."""
        return [[], *lines] if lines and self._any_printed else lines

    def _lines(self, source: str) -> list[list[Segment]]:
        """A block's lines, without empty ones around them and blanks at their ends."""
        try:
            rendered = self._console.render_lines(_Markdown(source), pad=False)
        except Exception:  # noqa: BLE001 - whatever rich can't draw is still to be read
            rendered = self._console.render_lines(Text(source), pad=False)
        lines = [_trimmed(line) for line in rendered]
        while lines and not lines[0]:
            del lines[0]
        while lines and not lines[-1]:
            del lines[-1]
        return lines

    def _leave_region(self) -> None:
        if self._live is not None:
            self._live.update(_Lines(), refresh=True)
            self._live.stop()
            self._live = None


class _Lines:
    """Lines that have been rendered."""

    def __init__(self, lines: Iterable[list[Segment]] = ()) -> None:
        self._lines = list(lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines:
            yield from line
            yield Segment.line()


class _Code(CodeBlock):
    """Code without the blanks that rich puts around it: it is there to be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Syntax(str(self.text).rstrip(), self.lexer_name, theme=self.theme, word_wrap=True)


class _Markdown(Markdown):
    """What a model writes: tags are text, images are their words and address, links show theirs."""

    elements: ClassVar[dict[str, Any]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, source: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.parsed = _PARSER.parse(source)
        if any(token.level >= MAX_NESTING - 1 for token in self.parsed):
            raise ValueError("nested so deep that the parser leaves words out")
        for token in self.parsed:
            for at, child in enumerate(token.children or ()):
                if child.type == "image" and token.children:
                    words = f"{child.content} ({child.attrs.get('src', '')})"
                    token.children[at] = Token("text", "", 0, content=words)


def _trimmed(line: list[Segment]) -> list[Segment]:
    """Fit to be copied, and without control characters, wherever they came from."""
    made = [Segment(clean(text), style) for text, style, control in line if not control]
    while made and not made[-1].text.strip() and not _is_seen(made[-1]):
        made.pop()
    if made and not _is_seen(made[-1]):
        made[-1] = Segment(made[-1].text.rstrip(), made[-1].style)
    return made


def _is_seen(blank: Segment) -> bool:
    style = blank.style
    return style is not None and bool(style.bgcolor or style.underline or style.reverse)
