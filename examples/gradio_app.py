"""The chat with Gradio's ChatInterface: `python -m examples.gradio_app`, then http://127.0.0.1:7860.

A job generates; this looks at its newest snapshot as often as the page can bear, for Gradio draws
the whole answer anew each time. *Stop* and a closed tab end the job.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read at import: nothing is told to anybody

import gradio as gr

from examples.inference import Inference
from llm.catalogue import Catalogue, catalogue, choose_language
from llm.errors import LLMError
from llm.job import Snapshot
from llm.pacing import frame_cost_ms, interval_s
from llm.types import Message

WORDS = gr.I18n(en={"backend": "Who answers"}, **{"zh-CN": {"backend": "由谁回答"}})
LOOK_S = 0.05  # a look costs microseconds and holds no thread
SIGN_S = 1.0  # so often something is sent anyway: only then Gradio sees that a tab was closed


def chat_page(inference: Inference) -> gr.ChatInterface:
    """The page; Gradio's own words in it follow the browser's language."""

    async def answer(
        question: str, history: list[dict[str, Any]], backend: str, request: gr.Request
    ) -> AsyncIterator[list[gr.ChatMessage]]:
        words = catalogue(choose_language(request.headers.get("accept-language")))
        try:
            job = inference.ask(backend, str(request.session_hash), said(history), question)
        except LLMError as error:
            yield [trouble(error, words)]
            return
        time_s, version, due_s, sign_s = asyncio.get_running_loop().time, -1, 0.0, 0.0
        try:
            while not (now := job.snapshot()).done:
                if (now.version > version and time_s() >= due_s) or time_s() >= sign_s:
                    yield messages(now, inference.going_on(job, now, words), words)
                    frame_s = interval_s(frame_cost_ms(len(now.text) + len(now.reasoning)), 1.0)
                    version, due_s, sign_s = now.version, time_s() + frame_s, time_s() + SIGN_S
                await asyncio.sleep(LOOK_S)
            shown = messages(now, "", words)
            yield [*shown, trouble(now.error, words)] if now.error else shown
        finally:
            job.cancel()  # after its end that does nothing

    backends = list(inference.backends)
    return gr.ChatInterface(
        answer,
        title="Steady Chat",
        # Without Gradio's own button that posts the conversation on a public forum.
        chatbot=gr.Chatbot(scale=1, show_label=False, buttons=["copy", "copy_all"]),
        additional_inputs=[
            gr.Dropdown(backends, value=backends[0], label=WORDS("backend"), show_label=False)
        ],
        additional_inputs_accordion=gr.Accordion(WORDS("backend"), open=False),
        concurrency_limit=None,  # the engine's line is the fair one
        api_visibility="private",
    )


def messages(now: Snapshot, state: str, words: Catalogue) -> list[gr.ChatMessage]:
    """An answer as it stands. What has a title is no part of it, and isn't sent back."""
    if now.reasoning and not now.thinking:
        state = words.say("reasoning-thought", seconds=int(now.reasoning_s or 0))
    meta = {"title": state, "status": "done" if now.text or now.done else "pending"}
    above = [gr.ChatMessage(now.reasoning, metadata=meta)] if state else []
    return [*above, gr.ChatMessage(now.text)] if now.text else above


def trouble(error: LLMError, words: Catalogue) -> gr.ChatMessage:
    """An error's sentence below what there is. (After a gr.Error no further question is taken.)"""
    return gr.ChatMessage("", metadata={"title": f"⚠ {error.sentence(words)}"})


def said(history: list[dict[str, Any]]) -> list[Message]:
    """The conversation so far, as the engine takes it: the questions that have an answer."""
    turns: list[Message] = []
    for each in history:
        if not (each.get("metadata") or {}).get("title"):
            if each["role"] == "user" and turns and turns[-1].role == "user":
                turns.pop()
            turns.append(Message(each["role"], "".join(part["text"] for part in each["content"])))
    return turns[:-1] if turns and turns[-1].role == "user" else turns


if __name__ == "__main__":
    inference = Inference()
    try:
        page = chat_page(inference)
        page.launch(share=False, i18n=WORDS, run_history=False, ssr_mode=False, footer_links=[])
    finally:
        inference.close()
