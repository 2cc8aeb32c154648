"""Several answers of one model at once: who takes part in the next pass, and what comes of it.

One thread runs pass after pass while there is anybody to answer. In each, every answer that is
being written gets a token, and prompts that wait are read as far as a moment allows. An answer
joins between two passes and leaves after any.

Nothing here waits for a reader: an answer's text is kept until it is read, which is little (some
bytes a token, beside kilobytes of keys and values), and is bounded by the answer's own limit. A
slow reader so costs the others nothing, and gives its place free as soon as a quick one.

Imports torch; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torch

from llm.errors import ShuttingDownError
from llm.fault_log import log_fault
from llm.local_errors import is_out_of_memory, why_it_ended
from llm.local_memory import forget_frames, free_memory
from llm.local_ragged import KeyValues, Part, RaggedModel
from llm.local_stopping import watching
from llm.local_streamer import BoundedTextStreamer, GenerationStopped
from llm.prefill_progress import PrefillProgress
from llm.types import Notice

if TYPE_CHECKING:
    from llm.local_sampling import Chooser

MOMENT_S = 0.25
"""How long the reading of prompts may hold up those whose answers are being written, each pass."""

READING_S = 1.0
"""The same where no answer is being written: nobody is held up, but who comes next waits so long."""

GATHERING_S = 0.05
"""How long the first pass waits for others whose prompts are being prepared at this moment."""

REASSURING_S = 5.0
"""How often the reader of an answer that was put off is told that it goes on."""

ROOM_TOKENS = 256
"""Room is made for so many more tokens at once, or for a quarter of what there is."""

_FEWEST = 32  # tokens of prompts that a pass reads at least
_MOST = 1024  # and at most: its memory is bounded so

log = logging.getLogger(__name__)


class BatchedAnswer:
    """One answer in a batch: its tokens so far, its place in memory, and who reads it.

    Thread-safety: the batch's thread alone touches it, but for `leave`.
    """

    def __init__(
        self,
        batch: Batch,
        ids: Sequence[int],
        limit: int,
        choose: Chooser,
        streamer: BoundedTextStreamer,
    ) -> None:
        self.ids = list(ids)
        self.limit = len(self.ids) + limit
        self.choose = choose
        self.streamer = streamer
        self.memory = KeyValues()
        self.progress: PrefillProgress | None = None
        self.put_off = False
        """It had to give up its memory for others once."""
        self.done = False
        """Nothing more is to be computed; its place is given away before the next pass."""
        self.over = threading.Event()
        self.last: threading.Thread | None = None
        """The batch's thread, where it ends with this answer."""
        self._batch = batch

    @property
    def unread(self) -> int:
        """Tokens that the model hasn't read yet: 1 where the answer is being written."""
        return len(self.ids) - self.memory.length

    def leave(self) -> None:
        """Stop, and wait until nothing of this answer is computed or kept any more."""
        self.streamer.stop()
        if self._batch.is_this_thread():
            return  # the garbage collector ends a forgotten reader just here
        self._batch.wake(self)
        self.over.wait()
        if self.last is not None:
            self.last.join()


class Batch:
    """The answers that one loaded model gives at once.

    Its thread lives while there is anybody to answer, and memory for keys and values is held by
    the answers: an idle batch holds nothing but the model.

    Faults: a pass that fails with one answer in it ends that answer. One that fails with several
    is repeated for each by itself, and whose fails again ends; where memory ran out, the younger
    half gives up its memory instead and is read again later. So no answer ends for another's sake.

    Thread-safety: `coming`, `join` and `close` may be called from any thread.

    Args:
        model: the model.
        name: what people call it, for errors.
        size: the most answers in a pass.
        ends: ids that end an answer.
        bytes_per_token: that keys and values take.
        free_bytes: says how much memory they may take, all answers together.
        speed: prompt tokens read a second, as a first guess.
    """

    def __init__(
        self,
        model: RaggedModel,
        name: str,
        *,
        size: int,
        ends: Sequence[int],
        bytes_per_token: int,
        free_bytes: Callable[[], int],
        speed: float,
    ) -> None:
        self.size = size
        self._model = model
        self._name = name
        self._ends = frozenset(ends)
        self._bytes_per_token = bytes_per_token
        self._free_bytes = free_bytes
        self._speed = speed
        self._writing_s = 0.0
        self._changed = threading.Condition()
        self._coming = 0
        self._waiting: deque[BatchedAnswer] = deque()
        self._closed = False
        self._thread: threading.Thread | None = None
        # The batch's thread alone:
        self._running: list[BatchedAnswer] = []
        self._most = size
        self._room = 0
        self._reassured_s = float("-inf")

    @contextmanager
    def coming(self) -> Iterator[None]:
        """While this lasts, a first pass waits a moment for whoever is about to join."""
        with self._changed:
            self._coming += 1
        try:
            yield
        finally:
            with self._changed:
                self._coming -= 1
                self._changed.notify_all()

    def room_tokens(self) -> int:
        """Prompt and answer together may have so many tokens, where no other answer runs."""
        with self._changed:
            return self._room if self._thread is not None and self._room else self._free_tokens()

    def join(
        self,
        ids: Sequence[int],
        limit: int,
        choose: Chooser,
        streamer: BoundedTextStreamer,
    ) -> BatchedAnswer:
        """Have a prompt answered; the tokens go to the streamer, which must never wait.

        Args:
            ids: the prompt's.
            limit: tokens that the answer may have.
            choose: says the answer's next token.

        Raises:
            ShuttingDownError: the batch is closed.
            RuntimeError: no thread can be started.
        """
        answer = BatchedAnswer(self, ids, limit, choose, streamer)
        with self._changed:
            if self._closed:
                raise ShuttingDownError
            self._waiting.append(answer)
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="generate-batch", daemon=True)
                try:
                    thread.start()
                except BaseException:
                    self._waiting.remove(answer)
                    raise
                self._thread = thread
            self._changed.notify_all()
        return answer

    def wake(self, answer: BatchedAnswer) -> None:
        """Have the batch look again; one that hasn't been let in is let go at once."""
        with self._changed:
            if answer in self._waiting:
                self._waiting.remove(answer)
                answer.over.set()
            self._changed.notify_all()

    def is_this_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Stop every answer, end the thread and give all memory back."""
        with self._changed:
            self._closed = True
            thread, answers = self._thread, [*self._waiting, *self._running]
            self._changed.notify_all()
        for answer in answers:
            answer.streamer.stop()
        if thread is not None and not self.is_this_thread():
            thread.join()

    # The batch's thread.

    def _work(self) -> None:
        """Pass after pass until nobody is left, whatever happens."""
        try:
            self._gather()
            with torch.inference_mode():
                while self._let_in():
                    self._reassure()
                    if self._running:
                        self._make_room()
                        self._pass()
        except BaseException as error:  # noqa: BLE001 - nothing may leave the readers waiting
            with self._changed:
                answers = [*self._running, *self._waiting]
                self._running.clear()
                self._waiting.clear()
                self._thread = None
            for answer in answers:
                with suppress(Exception):  # the others wait too
                    self._fail(answer, error)
                answer.over.set()

    def _reassure(self) -> None:
        """Tell the readers of answers that were put off, now and then, that these go on later."""
        if time.monotonic() - self._reassured_s < REASSURING_S:
            return
        self._reassured_s = time.monotonic()
        with self._changed:
            waiting = list(self._waiting)
        for answer in waiting:
            if answer.put_off:
                answer.streamer.notice(Notice())

    def _gather(self) -> None:
        """Those who ask at the same moment begin together, each as soon as the other."""
        with self._changed:
            self._changed.wait_for(lambda: not self._coming or self._closed, GATHERING_S)
            self._most = self.size
            self._room = self._free_tokens()

    def _let_in(self) -> bool:
        """Let go who has ended and take in who waits and fits, in their order.

        Returns False, once, when nobody is left.
        """
        ended = [answer for answer in self._running if answer.done or answer.streamer.stopped]
        for answer in ended:
            self._running.remove(answer)
            answer.memory.forget()
        with self._changed:
            gone = [answer for answer in self._waiting if answer.streamer.stopped]
            for answer in gone:
                self._waiting.remove(answer)
            while self._waiting and len(self._running) < self._most:
                room = self._wanted(self._waiting[0])
                if self._running and self._taken() + room > self._room:
                    break
                answer = self._waiting.popleft()
                answer.memory.capacity = room
                # One that was put off is read again in the middle of its text: nothing to tell.
                answer.progress = answer.progress or PrefillProgress(answer.streamer.notice)
                self._running.append(answer)
            last = not self._running and not self._waiting
            if last:
                self._thread = None
        for answer in [*ended, *gone]:
            answer.last = threading.current_thread() if last else None
            answer.over.set()
        return not last

    def _free_tokens(self) -> int:
        return self._free_bytes() // self._bytes_per_token

    def _taken(self) -> int:
        return sum(answer.memory.capacity for answer in self._running)

    @staticmethod
    def _wanted(answer: BatchedAnswer) -> int:
        tokens = len(answer.ids)
        return min(answer.limit, tokens + max(ROOM_TOKENS, tokens // 4))

    def _make_room(self) -> None:
        """Have every answer's next token fit; the youngest give way where memory is short."""
        for answer in list(self._running):
            if answer not in self._running or answer.memory.capacity >= len(answer.ids):
                continue  # put off meanwhile, or with room enough
            more = self._wanted(answer) - answer.memory.capacity
            while self._taken() + more > self._room and len(self._running) > 1:
                self._put_off()
            if answer in self._running:
                answer.memory.capacity += more

    def _put_off(self) -> None:
        """Have the youngest give up its memory; it is read again when there is room."""
        answer = self._running.pop()
        answer.put_off = True
        answer.memory.forget()
        with self._changed:
            self._waiting.appendleft(answer)

    def _pass(self) -> None:
        """A token for every answer that is being written, and a moment's reading of prompts."""
        writing = [(answer, 1) for answer in self._running if answer.unread == 1]
        moment_s = MOMENT_S if writing else READING_S
        left = min(_MOST, max(_FEWEST, int(self._speed * moment_s)))
        reading = []
        for answer in self._running:
            if answer.unread > 1 and left > 0:
                reading.append((answer, min(answer.unread, left)))
                left -= reading[-1][1]
        parts = [*writing, *reading]
        began_s = time.perf_counter()  # the other clock stands still for 16 ms on Windows
        try:
            self._attempt(parts)
        except GenerationStopped:
            return
        except BaseException as error:  # noqa: BLE001 - models raise anything
            self._cope(error, parts)
            return
        self._learn_speed(time.perf_counter() - began_s, sum(count for _, count in reading))

    def _learn_speed(self, took_s: float, read: int) -> None:
        if not read:
            self._writing_s = took_s
        elif read >= _FEWEST // 2:
            reading_s = max(took_s - self._writing_s, took_s / 4, 1e-6)
            self._speed = (self._speed + read / reading_s) / 2

    def _attempt(self, parts: Sequence[tuple[BatchedAnswer, int]]) -> None:
        """One pass over so many unread tokens of these answers, and what comes of it.

        Where it raises nothing has been said, and it may be done again.
        """
        texts = [
            Part(answer.memory, answer.ids[answer.memory.length : answer.memory.length + count])
            for answer, count in parts
        ]
        read = [number for number, (answer, count) in enumerate(parts) if count == answer.unread]
        reading = [(answer, count) for answer, count in parts if answer.unread > 1]

        def stopped() -> bool:
            return all(answer.streamer.stopped for answer, _ in parts)

        def reached(done: float) -> None:
            for answer, count in reading:
                if answer.progress is not None:
                    answer.progress.reached((answer.memory.length + done * count) / len(answer.ids))

        with watching(stopped, reached):
            logits = self._model.logits(texts, read or [0])
        chosen: dict[BatchedAnswer, Any] = {}
        try:
            for row, number in enumerate(read):
                answer = parts[number][0]
                try:
                    chosen[answer] = answer.choose(logits[row : row + 1])
                except BaseException as error:  # noqa: BLE001 - its parameters are its own trouble
                    self._fail(answer, error)
            # A device tells only now of what failed on it.
            tokens = torch.stack(list(chosen.values())).tolist() if chosen else []
        except BaseException:
            for answer in chosen:
                answer.choose.undo()
            raise
        for answer, count in parts:
            answer.memory.length += count
        for answer, token in zip(chosen, tokens, strict=True):
            self._say(answer, token)

    def _say(self, answer: BatchedAnswer, token: int) -> None:
        answer.ids.append(token)
        try:
            answer.streamer.put(torch.tensor([token]))
            if token in self._ends or len(answer.ids) >= answer.limit:
                answer.streamer.end()
                answer.done = True
                self._most = min(self.size, self._most + 1)  # where memory had run out before
        except GenerationStopped:
            answer.done = True
        except BaseException as error:  # noqa: BLE001 - its text is no one else's trouble
            self._fail(answer, error)

    def _cope(self, error: BaseException, parts: Sequence[tuple[BatchedAnswer, int]]) -> None:
        """A pass failed: end only whom it must."""
        if len(parts) == 1:
            self._fail(parts[0][0], error)
            return
        log_fault(log, "a pass over several answers failed", error)
        out_of_memory = is_out_of_memory(error)
        forget_frames(error)
        if out_of_memory:
            self._most = len(self._running) // 2
            while len(self._running) > self._most:
                self._put_off()
            free_memory()
            return
        for part in parts:
            try:
                self._attempt([part])
            except GenerationStopped:
                continue
            except BaseException as alone:  # noqa: BLE001 - models raise anything
                self._fail(part[0], alone)

    def _fail(self, answer: BatchedAnswer, error: BaseException) -> None:
        """End an answer: its reader gets what there is, then the reason."""
        answer.done = True
        answer.memory.forget()
        answer.streamer.fail(why_it_ended(error, self._name))
