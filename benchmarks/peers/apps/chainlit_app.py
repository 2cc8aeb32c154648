"""Chainlit over an OpenAI-compatible server, as its documentation shows it.

Source: https://docs.chainlit.io/advanced-features/streaming
"""

import os

import chainlit as cl
from openai import AsyncOpenAI

client = AsyncOpenAI(base_url=os.environ["BENCH_BASE_URL"], api_key="none")


@cl.on_chat_start
def begin():
    cl.user_session.set("asked", [])


@cl.on_message
async def answer(message: cl.Message):
    asked = cl.user_session.get("asked")
    asked.append({"role": "user", "content": message.content})
    told = cl.Message(content="")
    stream = await client.chat.completions.create(
        model=os.environ["BENCH_MODEL"], messages=asked, stream=True
    )
    async for chunk in stream:
        if chunk.choices and (piece := chunk.choices[0].delta.content):
            await told.stream_token(piece)
    asked.append({"role": "assistant", "content": told.content})
    await told.update()
