"""An answer on the page: finished blocks drawn once, the open tail once a frame.

The same structure whether the answer is running or long over, so a rerun finds every element in
its place and the browser has nothing to rebuild.
"""

from __future__ import annotations

from streamlit.delta_generator import DeltaGenerator

from llm.blocks import BlockSplitter
from llm.open_tail import presentable
from llm.plain_markdown import plain

GROUP = 10
"""Blocks a container: a frame costs more with every finished sibling of the tail
(docs/decisions.md, "What a frame costs")."""

LONG_LIST_CHARS = 6000
"""A longer list is drawn in parts with its numbering kept, or each frame would send all of it."""


class AnswerView:
    """Draws one answer into a container, a block an element.

    The tail is the last element. When its block is finished it stays where it is and the next
    tail begins below it: at no moment, whatever the network does, is a block missing or twice.

    Args:
        place: an empty container of its own.

    Thread-safety: one thread, the script run that made it.
    """

    def __init__(self, place: DeltaGenerator) -> None:
        self._place = place
        self._groups: list[DeltaGenerator] = []
        self._elements: list[DeltaGenerator] = []
        self._shown: list[str] = []
        self._sources: tuple[str, ...] = ()
        self._splitter = BlockSplitter(max_list_chars=LONG_LIST_CHARS)
        self.bytes_sent = 0
        """The Markdown that was sent to the browser so far, in UTF-8."""

    def draw(self, text: str, *, done: bool) -> int:
        """Show the answer so far, or all of it.

        Returns:
            Characters of Markdown in the tail, for the pacer.
        """
        split = self._splitter.update(text, done=done)
        # All of a frame is made ready before any of it is sent: what comes in two parts the
        # browser draws twice.
        tail = plain(presentable(split.tail)) if split.tail else ""
        self._show_finished(split.settled)
        self._trim(len(split.settled) + 1)
        if tail or len(self._shown) > len(split.settled):
            self._put(len(split.settled), tail)
        return len(tail)

    def draw_finished(self, blocks: tuple[str, ...]) -> None:
        """Show an answer that is over, from its `finished_blocks`."""
        self._show_finished(blocks)
        self._trim(len(blocks))

    def _show_finished(self, blocks: tuple[str, ...]) -> None:
        drawn = self._sources  # longer than `blocks` where text turned out to be reasoning
        changed = [
            (index, plain(source))
            for index, source in enumerate(blocks)
            if index >= len(drawn) or drawn[index] != source
        ]
        for index, markdown in changed:
            self._put(index, markdown)
        self._sources = blocks

    def _put(self, index: int, markdown: str) -> None:
        """Have element `index`, at most one past the last, show this."""
        if index < len(self._shown):
            if self._shown[index] != markdown:
                self._elements[index].markdown(markdown)
                self._shown[index] = markdown
                self.bytes_sent += len(markdown.encode())
            return
        if index % GROUP == 0:
            self._groups.append(self._place.container())
        self._elements.append(self._groups[-1].markdown(markdown))
        self._shown.append(markdown)
        self.bytes_sent += len(markdown.encode())

    def _trim(self, count: int) -> None:
        """Blocks that have become one, at a footnote for instance, leave elements behind."""
        for index in range(count, len(self._shown)):
            if self._shown[index]:
                self._elements[index].empty()
                self._shown[index] = ""


def finished_blocks(text: str) -> tuple[str, ...]:
    """A whole answer's blocks, as `AnswerView.draw` ends up with them."""
    return BlockSplitter(max_list_chars=LONG_LIST_CHARS).update(text, done=True).settled
