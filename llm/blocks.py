"""Splits a growing Markdown text into blocks that are finished and a tail that is not.

Finished blocks are drawn once and left alone; only the tail is drawn again with each frame.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from llm.markdown_grammar import parse_blocks

LARGE_TAIL_CHARS = 400
"""From this length on an open block is not parsed again from its first line."""

_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\[\s\S]){1,999})\]")
_LISTS = ("bullet_list_open", "ordered_list_open")
_CODE = ("fence", "code_block", "html_block", "math_block")
# The beginning of an unfinished line that settles what kind of line it is, whatever follows.
_DECIDED = re.compile(
    r" {0,3}(?:[^\s\d\-+*_#>=|\[<$\\`~&:]|[-+*] +[^\s\-+*_]|\d{1,9}[.)] +\S|#{1,6} +\S"
    r"|\*{1,3}[^\s*]|_{1,3}[^\s_]|~~[^\s~]|`{1,2}[^`])"
)


@dataclass(frozen=True, slots=True)
class Split:
    """A text as it is to be drawn.

    Args:
        settled: sources of the finished blocks, oldest first. Joined with `tail` they are the text
            again, but for link definitions of other blocks that are put before a block that uses
            them.
        tail: source of the block that is still being written; "" when all is done.
    """

    settled: tuple[str, ...] = ()
    tail: str = ""


@dataclass(slots=True)
class _Block:
    source: str
    definitions: dict[str, str]
    labels: frozenset[str] = frozenset()


class BlockSplitter:
    r"""Splits one text that grows, parsing only what is new and the open block.

    Each block, drawn as a document of its own, looks as it does in the whole text. A settled block
    changes in one case only: the definition of a link that it uses (`[x]: address`) arrives after
    it, and is then put before its source. Compare the lists and draw again what differs.

    A block settles when the next one has begun beyond doubt, which can be up to a line later than
    a reader would say so. Line breaks are given back as "\n".

    Args:
        max_list_chars: where given, a list that grows beyond this is settled in parts, between its
            items, so that the tail stays short. Each part is then a list of its own, which only
            differs in spacing, and where some items have blank lines between them and others not.

    Thread-safety: none; one for each reader.
    """

    def __init__(self, *, max_list_chars: int | None = None) -> None:
        self._max_list_chars = sys.maxsize if max_list_chars is None else max_list_chars
        self._raw = ""
        self._done = False
        self._restart()

    def _restart(self) -> None:
        self._text = ""
        self._blocks: list[_Block] = []
        self._definitions: dict[str, str] = {}
        self._rendered: list[str] = []
        self._users: dict[str, list[int]] = {}
        self._tail_start = 0  # where the open block begins
        self._resume = 0  # where parsing begins, within the open block
        self._context = ""  # what stands for the part of the open block before that
        self._parsed_to = -1
        self._parse_from = 0  # the least length of text that is worth the next parse
        self._skipped_definitions: dict[str, str] = {}  # of the open block, before `_resume`
        self._split = Split()

    def update(self, text: str, done: bool) -> Split:
        """Take the whole text so far.

        Args:
            text: all of it; where it does not continue the previous one, all starts over.
            done: whether it is complete.
        """
        went_back = self._done and (not done or text != self._raw)
        if went_back or not text.startswith(self._raw):
            self._restart()
        elif text == self._raw and done == self._done:
            return self._split
        self._raw, self._done = text, done
        if "\r" in text:
            text = text.replace("\r\n", "\n")
            text = (text if done else text.removesuffix("\r")).replace("\r", "\n")
            if not text.startswith(self._text):
                self._restart()
        self._text = text
        limit = len(text) if done else self._decided_to()
        if done or (limit != self._parsed_to and limit >= self._parse_from):
            self._parse(limit, done)
        self._split = self._result(done)
        return self._split

    def _decided_to(self) -> int:
        """How far the text's meaning is certain: to its last line break, or into its last line."""
        line = self._text.rfind("\n") + 1
        decided = _DECIDED.match(self._text, line)
        return decided.end() if decided else line

    def _parse(self, limit: int, done: bool) -> None:
        # What is parsed may end inside a line; the parser then sees that line's certain beginning.
        self._parsed_to = limit
        region = self._context + self._text[self._resume : limit]
        tokens, env = parse_blocks(region, final=done)
        tops = [token for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
        starts = _line_starts(region)
        shift = self._resume - len(self._context)
        finished = len(tops) if done else max(0, len(tops) - 1)
        if finished and not done and _leans_on_previous(tops, region, starts):
            finished -= 1
        for number in range(finished):
            following = tops[number + 1] if number + 1 < len(tops) else None
            end = shift + starts[_first_line(following)] if following else len(self._text)
            self._settle_parts(tops[number], tokens, starts, shift)
            self._settle(end, tops[number].type, _definitions(env, tops[number]))
        if done:
            if self._tail_start < len(self._text):
                self._settle(len(self._text), "nothing", {})
            return
        if finished:
            self._resume, self._context = self._tail_start, ""
        last = tops[finished] if finished < len(tops) else None
        if last is None or not self._skip(last, tokens, env, region, starts, shift):
            size = limit - self._resume
            self._parse_from = limit + size // 8 if size > LARGE_TAIL_CHARS else 0

    def _settle(self, end: int, kind: str, definitions: dict[str, str]) -> None:
        """Finish the block from the tail's start to `end`, both in characters of the text."""
        source = self._text[self._tail_start : end]
        self._tail_start = end
        block = _Block(source, {**self._skipped_definitions, **definitions})
        self._skipped_definitions = {}
        if kind not in _CODE:
            block.labels = _labels(source)
        number = len(self._blocks)
        self._blocks.append(block)
        for label in block.labels:
            self._users.setdefault(label, []).append(number)
        self._rendered.append(self._with_definitions(source, block.labels, block.definitions))
        for label, definition in block.definitions.items():
            if label not in self._definitions:
                self._definitions[label] = definition
                for user in self._users.get(label, ()):
                    used = self._blocks[user]
                    self._rendered[user] = self._with_definitions(
                        used.source, used.labels, used.definitions
                    )

    def _with_definitions(self, source: str, labels: frozenset[str], own: dict[str, str]) -> str:
        needed = [
            self._definitions[label]
            for label in sorted(labels)
            if label in self._definitions and self._definitions[label] != own.get(label)
        ]
        return "\n".join([*needed, "", source]) if needed else source

    def _skip(
        self,
        token: Token,
        tokens: list[Token],
        env: dict[str, Any],
        region: str,
        starts: list[int],
        shift: int,
    ) -> bool:
        """Let the next parse begin late in the open block `token`, behind lines that stand for it.

        Where that is not possible the next parse waits until there is an eighth more to parse, so
        that all of them together cost no more than a few times the text.
        """
        if token.map is None:
            return False
        first = token.map[0]
        if len(region) - starts[first] < LARGE_TAIL_CHARS:
            return False
        last_line = region.rfind("\n", 0, len(region) - 1) + 1
        resume, context = 0, ""
        if token.type in _LISTS:
            items = [t for t in tokens if t.type == "list_item_open" and t.level == 1]
            resume = starts[_first_line(items[-1])]
        elif token.type == "paragraph_open":
            if not region[starts[first] :].lstrip().startswith("["):
                resume, context = starts[token.map[1] - 1], "x\n"
        elif token.type in ("fence", "table_open"):
            lines = region[starts[first] :].split("\n")
            if token.type == "table_open" or _is_open(lines, token.markup):
                resume = last_line
                context = "\n".join(lines[: 1 if token.type == "fence" else 2]) + "\n"
        if resume <= starts[first] + len(context):
            return False
        self._resume, self._context = shift + resume, context
        self._parse_from = 0
        if token.type in _LISTS:
            before = {
                label: found
                for label, found in env.get("references", {}).items()
                if starts[found["map"][0]] < resume
            }
            definitions = _definitions({"references": before}, token)
            self._skipped_definitions = {**definitions, **self._skipped_definitions}
            self._settle_parts(token, tokens, starts, shift)
        return True

    def _settle_parts(
        self, token: Token, tokens: list[Token], starts: list[int], shift: int
    ) -> None:
        """Settle a long list up to the first item that begins beyond the limit, and so on.

        Where it is cut depends on the text alone, not on how the text arrived.
        """
        if token.type not in _LISTS or token.map is None:
            return
        for item in tokens:
            if item.type == "list_item_open" and item.level == token.level + 1 and item.map:
                inside = token.map[0] <= item.map[0] < token.map[1]
                begin = shift + starts[item.map[0]]
                if inside and begin - self._tail_start >= self._max_list_chars:
                    self._settle(begin, token.type, {})

    def _result(self, done: bool) -> Split:
        tail = self._text[self._tail_start :]
        if tail and self._definitions:
            tail = self._with_definitions(tail, _labels(tail), {})
        return Split(tuple(self._rendered), tail)


def _leans_on_previous(tops: list[Token], region: str, starts: list[int]) -> bool:
    """Whether the last block may yet turn out to be part of the one before it.

    An open formula may end as text, which goes on with the paragraph above; a line in quotes may
    be the title of the definition above.
    """
    previous, last = tops[-2], tops[-1]
    if previous.map is None or last.map is None or previous.map[1] != last.map[0]:
        return False
    if previous.type == "definition":
        return region[starts[last.map[0]] :].lstrip()[:1] in ('"', "'", "(")
    return last.type == "math_block" and bool(last.meta["open"])


def _is_open(lines: list[str], markup: str) -> bool:
    closing = re.compile(rf" {{0,3}}{re.escape(markup)}{re.escape(markup[0])}*[ \t]*")
    return not any(closing.fullmatch(line) for line in lines[1:])


def _definitions(env: dict[str, Any], token: Token) -> dict[str, str]:
    """The link definitions inside the block that `token` opens, by normalised label."""
    first, last = token.map or (0, 0)
    return {
        label: _definition(label, found)
        for label, found in env.get("references", {}).items()
        if first <= found["map"][0] < last
    }


def _first_line(token: Token) -> int:
    return token.map[0] if token.map else 0


def _line_starts(text: str) -> list[int]:
    starts = [0]
    position = text.find("\n")
    while position >= 0:
        starts.append(position + 1)
        position = text.find("\n", position + 1)
    return starts


def _labels(source: str) -> frozenset[str]:
    if "[" not in source:
        return frozenset()
    return frozenset(normalizeReference(match[1]) for match in _LABEL.finditer(source))


def _definition(label: str, found: dict[str, Any]) -> str:
    title = found["title"].replace("\\", "\\\\").replace('"', '\\"')
    address = found["href"].replace("<", "%3C").replace(">", "%3E")
    return f"[{label}]: <{address}>" + (f' "{title}"' if title else "")
