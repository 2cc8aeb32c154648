"""One answer of a loaded model: prompt in, deltas out, nothing left behind.

Imports torch and transformers; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import jinja2

from llm.errors import (
    ContextOverflowError,
    InvalidRequestError,
    LLMError,
    MemoryWindowError,
    Reason,
)
from llm.local_batch import Batch
from llm.local_errors import why_it_ended
from llm.local_loader import LoadedModel
from llm.local_sampling import Chooser, generation_config, processors
from llm.local_stopping import watching
from llm.local_streamer import CAPACITY, BoundedTextStreamer, GenerationStopped
from llm.prefill_progress import PrefillProgress
from llm.reasoning import ReasoningSplitter, opened_at_the_end
from llm.types import CancelToken, Delta, Fingerprint, Finish, GenerationRequest, Notice, Usage

_TAG_TOKENS = 32  # more than any opening tag and the white space after it has
_MARK = "[the-answer-goes-on-here]"


def encode(loaded: LoadedModel, request: GenerationRequest) -> Any:
    """A request's messages to model inputs by the model's chat template: ids and mask of shape (1, T).

    An assistant's text at the end is gone on with: the prompt ends with its last character.

    Raises:
        InvalidRequestError: the template refuses these messages.
    """
    turns = [{"role": message.role, "content": message.content} for message in request.messages]
    try:
        if request.start_text is not None:
            prompt = _unfinished(loaded.tokenizer, turns)
            return loaded.tokenizer(prompt, add_special_tokens=False, return_tensors="pt")
        return loaded.tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )
    except jinja2.TemplateError as error:
        reason = Reason("reason-template-refuses", {"says": str(error)})
        raise InvalidRequestError(reason=reason) from error


def _unfinished(tokenizer: Any, turns: list[dict[str, str]]) -> str:
    """The rendered prompt, cut after the last message's text.

    transformers' own `continue_final_message` takes away white space at the text's end where the
    template trims messages: behind a mark without any it stays. A template that shows no answer
    at the end is given the text after its generation prompt.
    """
    *before, last = turns
    marked = {**last, "content": last["content"] + _MARK}
    rendered = str(tokenizer.apply_chat_template([*before, marked], tokenize=False))
    prompt, mark, _ = rendered.rpartition(_MARK)
    if mark:
        return prompt
    rendered = tokenizer.apply_chat_template(before, add_generation_prompt=True, tokenize=False)
    return f"{rendered}{last['content']}"


def generate(
    loaded: LoadedModel, request: GenerationRequest, cancel: CancelToken
) -> Generator[Delta | Notice | Finish]:
    """Answer one request: in the model's batch, or on a thread of its own behind a bounded queue.

    `completion_tokens` counts every generated token, the one that ends the answer too, as vLLM
    does. After `cancel`, `close` or being dropped it ends the work within one token (within one
    layer while the prompt is being read, where no other answer is computed in the same pass) and
    waits for that. A long prompt's reading is told by notices.

    Raises:
        LLMError: and nothing else.
    """
    batch = loaded.batch
    asked = loaded.fingerprint.now() if loaded.fingerprint else None
    with batch.coming() if batch else nullcontext():
        inputs = encode(loaded, request)
        prompt_tokens = int(inputs["input_ids"].shape[1])
        if not prompt_tokens:
            raise InvalidRequestError(reason=Reason("reason-template-empty"))
        limit = _limit(loaded, prompt_tokens, request.params.max_tokens)
        goes_on = bool((request.start_text or "").strip())
        streamer = BoundedTextStreamer(
            loaded.tokenizer,
            # A batch can't wait for one reader; this is more than an answer has pieces.
            capacity=limit + CAPACITY if batch else CAPACITY,
            stop=request.params.stop,
            ends=loaded.eos_ids,
            goes_on=goes_on,
        )
        if batch:
            streamer.put(inputs["input_ids"])
        splitter = ReasoningSplitter(_opened(loaded, inputs["input_ids"]), goes_on=goes_on)
        forget = cancel.on_cancel(streamer.stop)
        try:
            if streamer.stopped:
                leave = streamer.stop
            elif batch:
                leave = _join(batch, loaded, request, inputs, limit, streamer)
            else:
                leave = _start(loaded, request, inputs, limit, streamer)
        except BaseException:
            forget()
            raise
    try:
        for piece in streamer:
            if isinstance(piece, Notice):
                yield replace(piece, model=loaded.name)
            else:
                yield from splitter.push(piece)
        if not streamer.stopped:
            yield from splitter.end()
    except LLMError:
        yield from splitter.end()
        raise
    finally:
        forget()
        leave()
    usage = Usage(prompt_tokens, streamer.generated_tokens)
    if streamer.stopped:
        yield Finish("abort", usage)
    elif (
        streamer.stop_string_found
        or streamer.last_token in loaded.eos_ids
        or streamer.generated_tokens < limit
    ):
        yield Finish("stop", usage, _still(loaded, asked))
    else:
        yield Finish("length", usage, _still(loaded, asked))


def _still(loaded: LoadedModel, asked: Fingerprint | None) -> Fingerprint | None:
    """The fingerprint from before, unless the day has changed in a template that names it."""
    return asked if loaded.fingerprint and loaded.fingerprint.now() == asked else None


def _opened(loaded: LoadedModel, prompt_ids: Any) -> str:
    """The reasoning tag that the chat template has opened in the prompt, (1, T); "" for none."""
    return opened_at_the_end(str(loaded.tokenizer.decode(prompt_ids[0, -_TAG_TOKENS:])))


def _limit(loaded: LoadedModel, prompt_tokens: int, max_tokens: int) -> int:
    """The most tokens that the answer may have, by the window and by the memory that there is.

    Raises:
        ContextOverflowError: there is no room for one.
    """
    window = loaded.context_tokens
    if window is not None:
        max_tokens = min(max_tokens, _room(window, prompt_tokens, ContextOverflowError))
    if loaded.batch:
        room = _room(loaded.batch.room_tokens(), prompt_tokens, MemoryWindowError)
        max_tokens = min(max_tokens, room)
    return max_tokens


def _room(window: int, prompt_tokens: int, error: type[ContextOverflowError]) -> int:
    if prompt_tokens + 1 > window:
        over = max(1, prompt_tokens - window)
        raise error(prompt_tokens=prompt_tokens, limit=window, over=over)
    return window - prompt_tokens


def _join(
    batch: Batch,
    loaded: LoadedModel,
    request: GenerationRequest,
    inputs: Any,
    limit: int,
    streamer: BoundedTextStreamer,
) -> Callable[[], None]:
    """Have the batch answer; returns what ends that and waits for its end."""
    ids = inputs["input_ids"]
    choose = Chooser(loaded.model, request.params, loaded.eos_ids, ids.to(loaded.device), limit)
    return batch.join(ids[0].tolist(), limit, choose, streamer).leave


def _start(
    loaded: LoadedModel,
    request: GenerationRequest,
    inputs: Any,
    limit: int,
    streamer: BoundedTextStreamer,
) -> Callable[[], None]:
    """Generate on a thread of its own; returns what ends that and waits for its end."""
    worker = threading.Thread(
        target=_work,
        args=(loaded, request, inputs.to(loaded.device), limit, streamer),
        name=f"generate-{request.request_id[:8]}",
        daemon=True,
    )
    worker.start()

    def leave() -> None:
        streamer.stop()
        worker.join()

    return leave


def _work(
    loaded: LoadedModel,
    request: GenerationRequest,
    inputs: Any,
    limit: int,
    streamer: BoundedTextStreamer,
) -> None:
    """The generating thread: whatever happens, the reader hears of it."""
    try:
        defaults = loaded.model.generation_config
        progress = PrefillProgress(streamer.notice)
        with watching(lambda: streamer.stopped, progress.reached):
            loaded.model.generate(
                **inputs,
                generation_config=generation_config(
                    request.params, defaults, loaded.eos_ids, limit
                ),
                logits_processor=processors(request.params, defaults, inputs["input_ids"].shape[1]),
                streamer=streamer,
            )
    except GenerationStopped:
        return
    except BaseException as error:  # noqa: BLE001 - nothing may leave the reader waiting
        # Its frames hold the cache and the logits.
        streamer.fail(why_it_ended(error, loaded.name))
