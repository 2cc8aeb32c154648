"""From token ids to whole characters, and from `generate()`'s thread to the reader's.

Imports transformers; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from transformers import TextIteratorStreamer

from llm.reasoning import tag_tokens
from llm.stop_strings import StopStrings
from llm.types import Notice

if TYPE_CHECKING:
    from collections.abc import Sequence

REPLACEMENT = "\ufffd"
CAPACITY = 64
"""Pieces that may wait for the reader before `generate()` is held."""

# A UTF-8 character has at most four bytes, and a token is at least one of them. Ids that came to
# nothing after twice as many will never be a character.
_MAX_PENDING = 8
_KEPT_PENDING = 3
_CONTEXT = 4  # ids of a text that is gone on with: enough for a space to be one between words


class GenerationStopped(Exception):  # noqa: N818 - it ends generate(), it is not a failure
    """Raised inside `generate()` to end it: the answer is no longer wanted."""


class IncrementalDecoder:
    """Turns token ids into text as they come, never showing part of a character.

    The tokenizer decodes a short window: the ids of the last complete piece, as context, and the
    ids since. What the window adds is given out up to the first character that isn't whole.

    `tokenizers.decoders.DecodeStream` works the same way, but it keeps whole characters back
    when a cut one follows in the same token, can't be asked for them when the answer ends there,
    and shows U+FFFD for bytes that never become a character; hence this class.

    Source: the window is that of Hugging Face text-generation-inference and vLLM's
    detokenize_incrementally; https://github.com/huggingface/tokenizers, DecodeStream.

    Thread-safety: none; one thread uses it.

    Args:
        decode: ids to text, without special tokens, with U+FFFD for what is no character.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._context = 0  # how many of the ids are context only
        self._shown = 0  # how many characters of the window's text were given out

    def push(self, token_id: int) -> str:
        """Take one id; the text that is certain now, often empty."""
        self._ids.append(token_id)
        text = self._decode(self._ids)
        whole = len(text.rstrip(REPLACEMENT))
        new = text[self._shown : whole]
        if whole == len(text) and whole > self._shown:
            self._start_window(self._ids[self._context :])
        else:
            self._shown = max(self._shown, whole)
            if len(self._ids) - self._context > _MAX_PENDING:
                # Nothing will come of the oldest: forget them, so the window stays short.
                kept = self._ids[-_KEPT_PENDING:]
                self._start_window(self._ids[: self._context])
                self._ids += kept
        return new.replace(REPLACEMENT, "")

    def follow(self, ids: Sequence[int]) -> None:
        """Go on after these ids: tokenizers drop the space before a text's first word only."""
        context: list[int] = []
        for count in range(_CONTEXT, _CONTEXT + _KEPT_PENDING + 1):
            context = list(ids[-count:])
            # One that begins with the rest of a character can spoil what comes after it.
            if not self._decode(context).startswith(REPLACEMENT):
                break
        self._start_window(context)

    def _start_window(self, context: list[int]) -> None:
        self._ids = context
        self._context = len(context)
        self._shown = len(self._decode(context)) if context else 0


def decoder_for(tokenizer: Any) -> IncrementalDecoder:
    """A decoder over a transformers tokenizer: straight into Rust where it has a Rust part."""
    rust = getattr(tokenizer, "_tokenizer", None)
    if rust is not None and hasattr(rust, "decode"):
        return IncrementalDecoder(lambda ids: str(rust.decode(ids, skip_special_tokens=True)))
    return IncrementalDecoder(
        lambda ids: str(
            tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )
    )


def reasoning_tags(tokenizer: Any, ends: Sequence[int] = ()) -> dict[int, str]:
    """Special tokens that are shown although decoding skips special ones: reasoning is told by them.

    What they stand between is decoded as if they weren't there.
    """
    added = getattr(tokenizer, "added_tokens_decoder", {})
    special = {number: str(token) for number, token in added.items() if token.special}
    shown = tag_tokens(special.values())
    return {n: text for n, text in special.items() if text in shown and n not in ends}


class BoundedTextStreamer(TextIteratorStreamer):  # type: ignore[misc]
    """One answer's way from `generate()`, which puts ids in, to a reader, who iterates over text.

    The queue between them is bounded: a slow reader holds `generate()` back, and nothing is
    dropped while the answer is wanted. `stop` wakes both sides: the next `put` (or the one that
    waits) raises `GenerationStopped`, and the reader's iteration ends. `fail` lets the reader
    have what is queued and then raises there. A notice goes the same way, and only the newest.

    Thread-safety: `put`, `end` and `notice` on the generating thread, iteration on one reader's thread,
    `stop` and `fail` on any.

    Args:
        tokenizer: a transformers tokenizer.
        capacity: the most pieces that wait.
        stop: strings before which the answer ends; `put` then raises `GenerationStopped` at the
            token that completes one.
        ends: ids that end an answer, and are never part of its text.
        goes_on: the prompt ends with the text that the answer goes on with.
    """

    def __init__(
        self,
        tokenizer: Any,
        capacity: int = CAPACITY,
        stop: tuple[str, ...] = (),
        ends: Sequence[int] = (),
        goes_on: bool = False,
    ) -> None:
        super().__init__(tokenizer, skip_prompt=True)
        self.next_tokens_are_prompt: bool = True
        self.generated_tokens = 0
        self.last_token: int | None = None
        self._decoder = decoder_for(tokenizer)
        self._goes_on = goes_on
        self._cutter = StopStrings(stop)
        self._tags = reasoning_tags(tokenizer, ends)
        self._capacity = capacity
        self._changed = threading.Condition()
        self._pieces: deque[str | Notice] = deque()
        self._ended = False
        self._stopped = False
        self._error: BaseException | None = None

    @property
    def stopped(self) -> bool:
        return self._stopped

    @property
    def stop_string_found(self) -> bool:
        return self._cutter.found

    def put(self, value: Any) -> None:
        """Take the prompt, which is not shown, or new ids, a tensor of shape (B,) with B = 1.

        Raises:
            GenerationStopped: the answer is no longer wanted, or a stop string came.
            ValueError: more than one sequence.
        """
        if self._stopped:
            raise GenerationStopped
        if value.ndim > 1 and value.shape[0] > 1:
            raise ValueError("BoundedTextStreamer streams one sequence")
        if self.next_tokens_are_prompt:
            self.next_tokens_are_prompt = False
            if self._goes_on:
                self._decoder.follow(value.reshape(-1).tolist())
            return
        for token_id in value.reshape(-1).tolist():
            self.generated_tokens += 1
            self.last_token = token_id
            piece = self._tags.get(token_id) or self._decoder.push(token_id)
            if piece := self._cutter.push(piece):
                self.on_finalized_text(piece)
            if self._cutter.found:
                self.end()
                raise GenerationStopped

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Queue a piece, waiting for room."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._pieces) < self._capacity or self._stopped)
            if self._stopped:
                raise GenerationStopped
            if text:
                self._pieces.append(text)
            self._ended = self._ended or stream_end
            self._changed.notify_all()

    def notice(self, notice: Notice) -> None:
        """Tell the reader what goes on, in place of the last notice if that is still queued."""
        with self._changed:
            if self._stopped:
                return
            if self._pieces and isinstance(self._pieces[-1], Notice):
                self._pieces.pop()
            self._pieces.append(notice)
            self._changed.notify_all()

    def end(self) -> None:
        """Nothing more comes. Every whole character has been queued before, or is now."""
        with self._changed:
            self._queue_held()
            self._ended = True
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Generating failed: the reader gets what is queued, then `error`."""
        with self._changed:
            self._queue_held()
            self._error = error
            self._ended = True
            self._changed.notify_all()

    def _queue_held(self) -> None:
        """What was held back in case it became a stop string, without waiting for room."""
        if (text := self._cutter.flush()) and not self._stopped:
            self._pieces.append(text)

    def stop(self) -> None:
        """The answer is no longer wanted. What is still queued is dropped.

        Does nothing where the answer has ended and was read.
        """
        with self._changed:
            if self._ended and not self._pieces:
                return
            self._stopped = True
            self._pieces.clear()
            self._changed.notify_all()

    def __next__(self) -> str | Notice:
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._ended or self._stopped)
            if self._stopped:
                raise StopIteration
            if self._pieces:
                piece = self._pieces.popleft()
                self._changed.notify_all()
                return piece
            if self._error is not None:
                raise self._error
            raise StopIteration
