"""The values that travel through the engine, and the two protocols that carry them.

Everything here is frozen or thread-safe, imports nothing heavy and knows no vendor.
"""

from __future__ import annotations

import math
import threading
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol

from llm.errors import InvalidParameterError, LLMError, Reason, StopStringsError

Role = Literal["system", "user", "assistant"]
DeltaKind = Literal["text", "reasoning", "recast"]
FinishReason = Literal["stop", "length", "abort", "error", "interrupted"]
"""`interrupted` is never a backend's word: the process that answered is gone."""
BackendPhase = Literal[
    "idle",
    "draining",
    "fetching",
    "converting",
    "loading",
    "warming",
    "starting",
    "ready",
    "unloaded",
    "failed",
]

MAX_SEED = 2**32 - 1
MAX_TOP_K = 1_000_000
MAX_REPETITION_PENALTY = 10
MAX_PENALTY = 2
"""Of presence and frequency, either way. Source: the OpenAI API; vLLM, sampling_params.py."""

MAX_STOP_STRINGS = 4
"""Source: the OpenAI API's limit; vLLM's too (VLLM_MAX_STOP_STRINGS)."""
MAX_STOP_CHARS = 200


@dataclass(frozen=True, slots=True)
class Message:
    """One turn as the model is told it."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen and when to stop; names and meanings are vLLM's.

    None, and no stop strings, leave a parameter out: a server isn't told of it, and the server's
    or the model's own value counts. That is not the same as the value that has no effect: a top_k
    of 0 also switches off what a model's own generation config says.

    Args:
        temperature: 0 (greedy) to 2.
        top_p: nucleus mass, over 0 and up to 1.
        max_tokens: the most tokens the answer may have, at least 1.
        seed: 0 to 2**32 - 1; left out gives a different answer each time.
        top_k: how many of the likeliest tokens are considered; 0 is all.
        min_p: the least share of the likeliest token's probability, 0 to 1.
        repetition_penalty: over 0 and up to 10; above 1 puts off tokens of prompt and answer.
        presence_penalty: -2 to 2; above 0 puts off tokens that the answer has.
        frequency_penalty: -2 to 2; the same for each time that the answer has them.
        stop: strings before which the answer ends; at most 4, of at most 200 characters each.

    Raises:
        InvalidParameterError: a value is outside its range.
    """

    temperature: float | None = 0.7
    top_p: float | None = 0.95
    max_tokens: int = 512
    seed: int | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require("temperature", self.temperature, 0, 2)
        _require("top_p", self.top_p, 0, 1, above_low=True)
        _require("max_tokens", self.max_tokens, 1, 1_000_000)
        _require("seed", self.seed, 0, MAX_SEED)
        _require("top_k", self.top_k, 0, MAX_TOP_K)
        _require("min_p", self.min_p, 0, 1)
        _require(
            "repetition_penalty",
            self.repetition_penalty,
            0,
            MAX_REPETITION_PENALTY,
            above_low=True,
        )
        _require("presence_penalty", self.presence_penalty, -MAX_PENALTY, MAX_PENALTY)
        _require("frequency_penalty", self.frequency_penalty, -MAX_PENALTY, MAX_PENALTY)
        if not stop_strings_fit(self.stop):
            raise StopStringsError(limit=MAX_STOP_STRINGS, chars=MAX_STOP_CHARS)

    def at_most(self, max_tokens: int) -> SamplingParams:
        """The same, for an answer of no more than so many tokens."""
        return self if self.max_tokens <= max_tokens else replace(self, max_tokens=max_tokens)

    def given(self) -> dict[str, Any]:
        """The parameters that aren't left out, by their names."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value not in (None, ())}


OPTIONAL_PARAMS = tuple(each.name for each in fields(SamplingParams) if each.name != "max_tokens")
"""The parameters that may be left out."""


def stop_strings_fit(stop: tuple[str, ...]) -> bool:
    """Whether these stop strings are neither too many nor too long, and none is empty."""
    return len(stop) <= MAX_STOP_STRINGS and all(0 < len(one) <= MAX_STOP_CHARS for one in stop)


def _require(
    name: str, value: float | None, low: float, high: float, *, above_low: bool = False
) -> None:
    if value is None:
        return
    fits = math.isfinite(value) and low <= value <= high and not (above_low and value == low)
    if not fits:
        raise InvalidParameterError(parameter=name, value=value, low=low, high=high)


MatchKind = Literal["exact", "similar"]


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How far an answer cache may go for one question.

    Args:
        owner: whose question it is; who that is decides whose answers may be given.
        similar: whether the answer to a similar question will do.
        random: whether an answer that was chosen at random, without a seed, may be given again.
        fresh: the model is to be asked anyway; its answer takes the old one's place.
    """

    owner: str
    similar: bool = False
    random: bool = False
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class FromCache:
    """Where an answer was taken from.

    Args:
        digest: the cache's name for it.
        question: what it was an answer to; empty for an exact match.
        similarity: of the two questions, -1 to 1; None for an exact match.
        created_s: when the model gave it, seconds since 1970.
        decision: the cache's own record of having given it.
    """

    kind: MatchKind
    digest: str
    created_s: float
    question: str = ""
    similarity: float | None = None
    decision: str = ""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """All that a backend needs to answer: the messages, oldest first, and the parameters.

    Where the last message is the assistant's, the backend goes on with that very text.

    Args:
        model: which of the backend's models is asked; empty leaves it to the backend.
        standing: it is a conversation between two questions, to be counted and not to be answered:
            its last answer is over.
        cache: how far an answer cache may go; None keeps it out altogether.
    """

    messages: tuple[Message, ...]
    params: SamplingParams = SamplingParams()
    model: str = ""
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    standing: bool = False
    cache: CacheUse | None = None

    @property
    def start_text(self) -> str | None:
        """The answer as far as it stands, to be gone on with; None asks for a new one."""
        last = self.messages[-1] if self.messages and not self.standing else None
        return last.content if last is not None and last.role == "assistant" else None


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer as it arrives. A piece is not a token.

    Args:
        text: never empty, but for a recast, which has none.
        kind: `text` of the answer, or `reasoning`. `recast` says that all text before it turned
            out to be reasoning: its opening tag stood in the prompt, unseen.
    """

    text: str
    kind: DeltaKind = "text"


@dataclass(frozen=True, slots=True)
class Notice:
    """What goes on before the first text: who is asked, and what is waited for.

    After it, a notice only says that the answer goes on, though nothing new is to be read.

    Args:
        reason: a sentence that may use `seconds`, the time since it was said; None where there is
            nothing out of the ordinary.
        server: who is asked, as settings call it.
        model: the model's name as a person would say it; empty while unknown.
        cached: the answer is one that was given before.
        begins: whether the prompt is read from now on, by a model that is there: all before was
            waiting.
    """

    reason: Reason | None = None
    server: str = ""
    model: str = ""
    cached: FromCache | None = None
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the backend tells them; None where it does not."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """All of a backend that can change an answer; two that are equal may answer for each other.

    Every field decides. None holds a user, a password or a key; those that are long are hashes.

    Args:
        kind: `local`, `vllm` or `scripted`.
        server: its address without user and password; empty where there is no server.
        model: what the model is called where it is kept.
        revision: what identifies the weights.
        template: of the chat template, or of what the server makes of fixed conversations; empty
            where there is none, or a server doesn't show it.
        numerics: how it is computed: engine and version, number types, quantization, attention,
            and whatever else may round in another way.
    """

    kind: str
    server: str
    model: str
    revision: str
    template: str
    numerics: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The last item of every stream: why it ended, and what it used.

    Args:
        fingerprint: what answered, where it was known and the same from the first token to the
            last; else None. It is no part of what was said: two that differ only here are equal.
        why: more of it, where the reason alone doesn't tell whoever asked what has happened.
    """

    reason: FinishReason
    usage: Usage = Usage()
    fingerprint: Fingerprint | None = field(default=None, compare=False)
    why: Reason | None = None


NOT_BEGUN = Reason("finish-not-begun")
"""Why there is nothing of an answer that was stopped: no model had been given its question."""


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """What a backend is doing about being ready.

    Args:
        phase: `idle` (nothing started) to `ready`, `failed`, or `starting`: a server that is
            there, but is still loading. `draining`: the answers of another model end first.
            `unloaded`: it was not used for long, and is loaded again by the next question.
        model: the model's name as a person would say it; empty while unknown.
        progress: 0 to 1 within the phase, None where it cannot be known.
        error: why it can't be used; only with `failed` and `starting`.
        elapsed_s: seconds since the present phase began.
        steps: the phases that lead to `ready`, in their order; empty where there is but one.
        fetch_bytes: how much there is to fetch; 0 while unknown.
        answering: how many answers are being given, where the backend knows.
        waiting: how many questions it was given wait for its model, where it knows.
        notice: what became of the last wish for another model, where that is worth a sentence.
        meanwhile: the model that answers while the other's files are fetched or converted.
        batched: a local model gives several answers in one batch.
        notes: what isn't as settings ask for, though it works.
    """

    phase: BackendPhase
    model: str = ""
    progress: float | None = None
    error: LLMError | None = None
    elapsed_s: float = 0.0
    steps: tuple[BackendPhase, ...] = ()
    fetch_bytes: int = 0
    answering: int = 0
    waiting: int = 0
    notice: Reason | None = None
    meanwhile: str = ""
    batched: bool = False
    notes: tuple[Reason, ...] = ()

    @property
    def ready(self) -> bool:
        return self.phase == "ready"

    @property
    def settled(self) -> bool:
        """Whether nothing is under way whose steps could be shown."""
        return self.phase in ("ready", "failed", "starting", "unloaded")

    @property
    def preparing(self) -> bool:
        return self.phase in ("draining", "fetching", "converting", "loading", "warming")


class CancelToken:
    """Says once, for all who hold it, that an answer is no longer wanted.

    Thread-safety: every method may be called from any thread. Callbacks run on the thread that
    calls `cancel`, or at once on the registering thread where it was cancelled before; they must
    be quick and must not raise.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        # Reentrant: an iterator that the garbage collector finishes may cancel from anywhere.
        self._lock = threading.RLock()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        """Cancel; a second call does nothing."""
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Run `callback` when cancelled; returns a function that takes the wish back."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        callback()
        return lambda: None

    def _forget(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep until cancelled or `timeout_s` has passed; says whether it was cancelled."""
        return self._event.wait(timeout_s)


class Backend(Protocol):
    """Something that answers.

    Thread-safety: `stream` may run for several requests at once, each on its own thread; at most
    `slots` of them are asked for at a time.
    """

    @property
    def name(self) -> str:
        """The kind, as settings call it: `local`, `vllm` or `scripted`."""
        ...

    @property
    def slots(self) -> int:
        """How many requests may run at once."""
        ...

    def status(self) -> BackendStatus:
        """What is known now. Never blocks, never raises; cheap enough for every frame."""
        ...

    def prepare(self) -> None:
        """Start getting ready in the background, or again after a failure. Returns at once."""
        ...

    def window_tokens(self, request: GenerationRequest) -> int | None:
        """The most tokens prompt and answer may have together, with the model that is asked.

        None while unknown. Never blocks, never raises.
        """
        ...

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        """The prompt's tokens, exactly as the model will be given it.

        The text that is gone on with counts too. Returns None where the number can't be had.
        May take as long as a small request to a server; `cancel` ends it. Never raises.
        """
        ...

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        """What would answer this request now; None while anything of it is unknown.

        Which backend really answers is only certain in the end, and then `Finish` tells it. Never
        blocks, never raises; cheap enough for every frame.
        """
        ...

    def stream(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        """Answer: zero or more `Delta`s, then exactly one `Finish`; `Notice`s before the first.

        A backend that is not ready yet gets ready first, on the caller's thread. After `cancel`
        the iterator ends within one token with `Finish("abort")` and frees what it holds; closing
        or dropping the iterator does the same.

        A request that ends with the assistant's text asks to go on with it: in the middle of a
        word, after white space, wherever it was cut. The deltas carry only what is new, and
        joined to that text they make one answer without a seam. `max_tokens`, `stop` and the
        counted completion tokens are about what is new. A server that can't go on answers as it
        can.

        Raises:
            LLMError: and nothing else, whatever the vendor raised.
        """
        ...

    def close(self) -> None:
        """Free everything. The backend is not used again."""
        ...
