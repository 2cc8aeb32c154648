"""An answer on the page: finished blocks drawn once, the open tail once a frame.

The same structure whether the answer is running or long over, so a rerun finds every element in
its place and the browser has nothing to rebuild.
"""

from __future__ import annotations

from functools import lru_cache

from streamlit.delta_generator import DeltaGenerator

from llm.blocks import BlockSplitter
from llm.open_tail import presentable
from llm.plain_markdown import plain

GROUP = 20
"""Finished blocks a container: a frame costs more with every sibling of the tail
(docs/decisions.md, "What a frame costs")."""


class AnswerView:
    """Draws one answer into a container.

    Args:
        place: an empty container of its own.

    Thread-safety: one thread, the script run that made it.
    """

    def __init__(self, place: DeltaGenerator) -> None:
        self._body = place.container()
        self._tail = place.empty()
        self._tail_shown: str | None = None
        self._groups: list[DeltaGenerator] = []
        self._elements: list[DeltaGenerator] = []
        self._sources: list[str] = []
        self._splitter = BlockSplitter()

    def draw(self, text: str, *, done: bool) -> int:
        """Show the answer so far, or all of it.

        Returns:
            Characters of Markdown in the tail that were sent, for the pacer.
        """
        split = self._splitter.update(text, done=done)
        tail = plain(presentable(split.tail)) if split.tail else ""
        # The tail first: between the two no block may be seen twice.
        if tail != self._tail_shown:
            if tail:
                self._tail.markdown(tail)
            else:
                self._tail.empty()
            self._tail_shown = tail
        self._settle(split.settled)
        return len(tail)

    def draw_finished(self, text: str) -> None:
        """Show an answer that is over; cheaper than `draw` for one that was shown before."""
        self._settle(_finished_blocks(text))

    def _settle(self, blocks: tuple[str, ...]) -> None:
        for index, source in enumerate(blocks):
            if index < len(self._sources):
                if self._sources[index] != source:
                    self._elements[index].markdown(plain(source))
                    self._sources[index] = source
                continue
            if index % GROUP == 0:
                self._groups.append(self._body.container())
            self._elements.append(self._groups[-1].markdown(plain(source)))
            self._sources.append(source)
        for element in self._elements[len(blocks) :]:
            element.empty()
        del self._elements[len(blocks) :], self._sources[len(blocks) :]


@lru_cache(maxsize=512)
def _finished_blocks(text: str) -> tuple[str, ...]:
    return BlockSplitter().update(text, done=True).settled
