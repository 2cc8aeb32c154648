"""Gradio's ChatInterface over an OpenAI-compatible server, as its documentation shows it.

A generator that yields the text so far, each time a piece has come.

Source: https://www.gradio.app/guides/creating-a-chatbot-fast#streaming-chatbots
"""

import os

import gradio as gr
from openai import OpenAI

client = OpenAI(base_url=os.environ["BENCH_BASE_URL"], api_key="none")


def answer(message, history):
    asked = [{"role": turn["role"], "content": turn["content"]} for turn in history]
    stream = client.chat.completions.create(
        model=os.environ["BENCH_MODEL"],
        messages=[*asked, {"role": "user", "content": message}],
        stream=True,
    )
    text = ""
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            text += chunk.choices[0].delta.content
            yield text


gr.ChatInterface(answer).launch(server_name="127.0.0.1")
