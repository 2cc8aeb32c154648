"""How a server is asked to go on with an answer, and what its chat template makes of the text."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from llm.errors import LLMError
from llm.types import GenerationRequest, Message

if TYPE_CHECKING:
    from llm.vllm_client import VllmClient

FIELDS = {"add_generation_prompt": False, "continue_final_message": True}
"""Both or neither: without a prompt for a new answer, and the last one closed, a model has no turn.

Source: the chat requests of vLLM and SGLang. llama.cpp goes on with a last answer by itself.
"""

_LIMIT_S = 3.0


def body_of(request: GenerationRequest) -> dict[str, Any]:
    """What is posted: the messages, and that the last one is gone on with, where it is the assistant's."""
    told = [{"role": message.role, "content": message.content} for message in request.messages]
    return {"messages": told} if request.start_text is None else {"messages": told, **FIELDS}


class TrimmingTemplates:
    """Which models' templates trim messages, as Llama 3's and Gemma's do.

    vLLM then cuts off the white space that the given text ends in, so that the model says it once
    more.

    Thread-safety: none; used on one event loop.
    """

    def __init__(self, client: VllmClient) -> None:
        self._client = client
        self._known: dict[str, bool] = {}

    async def trimmed(self, model: str, request: GenerationRequest) -> str:
        """The white space at the given text's end that the model isn't shown; "" if it can't be
        learned: it takes a server that counts tokens.
        """
        text = request.start_text or ""
        end = text[len(text.rstrip()) :]
        if not end:
            return ""
        if model not in self._known:
            try:
                async with asyncio.timeout(_LIMIT_S):
                    counts = [await self._count(model, text) for text in ("x", "x\n\n")]
            except (LLMError, TimeoutError):
                return ""
            self._known[model] = counts[0] is not None and counts[0] == counts[1]
        return end if self._known[model] else ""

    async def _count(self, model: str, text: str) -> int | None:
        messages = (Message("user", "x"), Message("assistant", text))
        return await self._client.count_tokens(model, body_of(GenerationRequest(messages)))
