"""One answer of a loaded model: prompt in, deltas out, nothing left behind.

Imports torch and transformers; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any

import jinja2
import torch

from llm.errors import ContextOverflowError, InvalidRequestError, LLMError, Reason
from llm.local_errors import generate_error, is_out_of_memory
from llm.local_loader import LoadedModel
from llm.local_memory import forget_frames, free_memory
from llm.local_sampling import generation_config, processors
from llm.local_streamer import BoundedTextStreamer, GenerationStopped
from llm.prefill_progress import PrefillProgress
from llm.reasoning import ReasoningSplitter, opened_at_the_end
from llm.types import CancelToken, Delta, Finish, GenerationRequest, Notice, Usage

_TAG_TOKENS = 32  # more than any opening tag and the white space after it has
_MARK = "[the-answer-goes-on-here]"

_running = threading.local()
"""The streamer of the answer that this thread generates, and how far its prompt has been read."""


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
    """Answer one request, on a thread of its own behind a bounded queue.

    `completion_tokens` counts every generated token, the one that ends the answer too, as vLLM
    does. After `cancel`, `close` or being dropped it ends the thread within one token (within one
    layer while the prompt is being read) and joins it. A long prompt's reading is told by notices.

    Raises:
        LLMError: and nothing else.
    """
    inputs = encode(loaded, request)
    prompt_tokens = int(inputs["input_ids"].shape[1])
    room = _room(loaded.context_tokens, prompt_tokens)
    limit = min(request.params.max_tokens, room) if room is not None else request.params.max_tokens
    goes_on = bool((request.start_text or "").strip())
    streamer = BoundedTextStreamer(
        loaded.tokenizer, stop=request.params.stop, ends=loaded.eos_ids, goes_on=goes_on
    )
    splitter = ReasoningSplitter(_opened(loaded, inputs["input_ids"]), goes_on=goes_on)
    worker = threading.Thread(
        target=_work,
        args=(loaded, request, inputs.to(loaded.device), limit, streamer),
        name=f"generate-{request.request_id[:8]}",
        daemon=True,
    )
    forget = cancel.on_cancel(streamer.stop)
    try:
        worker.start()
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
        streamer.stop()
        worker.join()
    usage = Usage(prompt_tokens, streamer.generated_tokens)
    if streamer.stopped:
        yield Finish("abort", usage)
    elif (
        streamer.stop_string_found
        or streamer.last_token in loaded.eos_ids
        or streamer.generated_tokens < limit
    ):
        yield Finish("stop", usage)
    else:
        yield Finish("length", usage)


def _opened(loaded: LoadedModel, prompt_ids: Any) -> str:
    """The reasoning tag that the chat template has opened in the prompt, (1, T); "" for none."""
    return opened_at_the_end(str(loaded.tokenizer.decode(prompt_ids[0, -_TAG_TOKENS:])))


def _room(window: int | None, prompt_tokens: int) -> int | None:
    if window is None:
        return None
    if prompt_tokens + 1 > window:
        raise ContextOverflowError(
            prompt_tokens=prompt_tokens, limit=window, over=max(1, prompt_tokens - window)
        )
    return window - prompt_tokens


def _work(
    loaded: LoadedModel,
    request: GenerationRequest,
    inputs: Any,
    limit: int,
    streamer: BoundedTextStreamer,
) -> None:
    """The generating thread: whatever happens, the reader hears of it."""
    _running.streamer = streamer
    _running.prefill = PrefillProgress(streamer.notice)
    failure: LLMError
    try:
        defaults = loaded.model.generation_config
        loaded.model.generate(
            **inputs,
            generation_config=generation_config(request.params, defaults, loaded.eos_ids, limit),
            logits_processor=processors(request.params, defaults, inputs["input_ids"].shape[1]),
            streamer=streamer,
        )
        return
    except GenerationStopped:
        return
    except BaseException as error:  # noqa: BLE001 - nothing may leave the reader waiting
        failure = generate_error(error, loaded.name)
        out_of_memory = is_out_of_memory(error)
        # They hold the cache and the logits; the error may be kept for long.
        forget_frames(error)
        if failure is not error:
            failure.__cause__ = None if out_of_memory else error
    if out_of_memory:
        free_memory()
    streamer.fail(failure)


def watch_for_stop(model: Any) -> None:
    """Look in between layers whether it was stopped, and how far a prompt has been read.

    So a stop takes effect while a long prompt is being read, and the wait for it can be told.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList):
            for number, layer in enumerate(module):
                layer.register_forward_pre_hook(partial(_before_layer, number / len(module)))
            return


def _before_layer(done: float, _module: Any, _args: Any) -> None:
    streamer = getattr(_running, "streamer", None)
    if streamer is None:
        return
    if streamer.stopped:
        raise GenerationStopped
    _running.prefill.reached(done)
