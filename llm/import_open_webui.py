"""Conversations of Open WebUI's chat export.

Its answers carry what was thought, and the calls of tools, as `<details>` elements; the first
becomes reasoning, the second is left out, and of code that was run the code stays.

Source: Open WebUI, `serialize_content_blocks` in backend/open_webui/utils/middleware.py and the
chat object of src/lib/components/chat/Chat.svelte.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal

from llm.import_notes import Notes, duration_s, mapping, moment_s, name, sequence
from llm.message_tree import MessageTree, Node
from llm.served_values import told_count
from llm.types import Usage

_OPENING = re.compile(r'<details\s+type="(reasoning|tool_calls|code_interpreter)"')
_CLOSING = "</details>"
_DURATION = re.compile(r'duration="([0-9.]{1,20})"')
_SUMMARY = re.compile(r"<summary>[^<]*</summary>\n?")
_QUOTE_MARK = re.compile(r"^> ?", re.MULTILINE)
_ROLES: dict[object, Literal["user", "assistant", "system"]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
}


def is_open_webui(entry: object) -> bool:
    """Whether this is a conversation of Open WebUI."""
    if not isinstance(entry, dict):
        return False
    chat = mapping(entry.get("chat")) or entry
    history = mapping(chat.get("history"))
    return isinstance(history.get("messages"), dict) or (
        isinstance(entry.get("chat"), dict) and isinstance(chat.get("messages"), list)
    )


def read_open_webui(entry: Mapping[str, Any], notes: Notes) -> MessageTree:
    """The conversation's messages."""
    chat = mapping(entry.get("chat")) or entry
    history = mapping(chat.get("history"))
    messages = dict(_messages(chat, history))
    current = history.get("currentId")
    system = notes.text(mapping(chat.get("params")).get("system")) or notes.text(chat.get("system"))
    return MessageTree(
        source="open-webui",
        own_id=name(entry.get("id")) or name(chat.get("id")),
        title=name(entry.get("title")) or name(chat.get("title")),
        nodes=[_node(key, message, notes) for key, message in messages.items()],
        children={
            key: [each for each in sequence(message.get("childrenIds")) if isinstance(each, str)]
            for key, message in messages.items()
        },
        current=current if isinstance(current, str) else next(reversed(messages), ""),
        created_s=moment_s(entry.get("created_at")) or moment_s(chat.get("timestamp")),
        updated_s=moment_s(entry.get("updated_at")),
        pinned=entry.get("pinned") is True,
        system_prompt=system,
    )


def _messages(
    chat: Mapping[str, Any], history: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    told = mapping(history.get("messages"))
    if told:
        yield from ((key, mapping(message)) for key, message in told.items())
        return
    # Without a tree there is a list of what is shown.
    before = None
    for number, message in enumerate(sequence(chat.get("messages"))):
        key = f"message {number}"
        yield key, {**mapping(message), "parentId": before, "childrenIds": []}
        before = key


def _node(key: str, message: Mapping[str, Any], notes: Notes) -> Node:
    parent = message.get("parentId")
    role = _ROLES.get(told) if isinstance(told := message.get("role"), str) else None
    content = _content(message.get("content"), notes)
    notes.left_out += len(sequence(message.get("files")))
    text, reasoning, seconds = content, "", None
    if role == "assistant":
        text, reasoning, seconds = _apart(content)
        if not text.strip() and not reasoning.strip():
            text, reasoning, seconds = _of_output(message, notes)
    usage = mapping(message.get("usage")) or mapping(message.get("info"))
    return Node(
        node_id=key,
        parent=parent if isinstance(parent, str) else "",
        role=role or "",
        text=text,
        reasoning=reasoning,
        model=name(message.get("modelName")) or name(message.get("model")),
        created_s=moment_s(message.get("timestamp")),
        finish="error" if message.get("error") else None,
        usage=Usage(
            _first_count(usage, "prompt_tokens", "prompt_eval_count", "input_tokens"),
            _first_count(usage, "completion_tokens", "eval_count", "output_tokens"),
        ),
        reasoning_s=seconds,
    )


def _first_count(values: Mapping[str, Any], *names: str) -> int | None:
    told = (told_count(values.get(each)) for each in names)
    return next((each for each in told if each is not None), None)


def _content(value: object, notes: Notes) -> str:
    """A text, or the texts among an OpenAI message's parts; what isn't text is counted."""
    if not isinstance(value, list):
        return notes.text(value)
    found = []
    for part in value:
        text = notes.text(part) or notes.text(mapping(part).get("text"))
        if text:
            found.append(text)
        elif part:
            notes.left_out += 1
    return "\n\n".join(found)


def _of_output(message: Mapping[str, Any], notes: Notes) -> tuple[str, str, float | None]:
    """Text, reasoning and its seconds of the list that newer versions keep beside the text."""
    texts: list[str] = []
    thoughts: list[str] = []
    seconds = None
    for item in map(mapping, sequence(message.get("output"))):
        parts = [*sequence(item.get("content")), *sequence(item.get("summary"))]
        told = [notes.text(mapping(part).get("text")) for part in parts]
        if item.get("type") == "message":
            texts += told
        elif item.get("type") == "reasoning":
            thoughts += told
            seconds = duration_s(item.get("duration")) if seconds is None else seconds
    return "\n\n".join(filter(None, texts)), "\n\n".join(filter(None, thoughts)), seconds


def _apart(content: str) -> tuple[str, str, float | None]:
    """Text, reasoning and its seconds of an answer with `<details>` elements or a `<think>` tag."""
    if content.lstrip().startswith("<think>"):
        thought, closing, text = content.lstrip().removeprefix("<think>").partition("</think>")
        return (
            (text.lstrip("\n"), thought.strip(), None) if closing else ("", thought.strip(), None)
        )
    texts: list[str] = []
    thoughts: list[str] = []
    seconds = None
    at = 0
    while opening := _OPENING.search(content, at):
        tag_end = content.find(">", opening.end())
        end = content.find(_CLOSING, tag_end)
        if tag_end < 0 or end < 0:
            break
        texts.append(content[at : opening.start()].strip("\n"))
        body = _without_summary(content[tag_end + 1 : end])
        if opening[1] == "reasoning":
            thoughts.append(_unquoted(body))
            told = _DURATION.search(content, opening.end(), min(tag_end, opening.end() + 500))
            seconds = duration_s(told[1]) if told and seconds is None else seconds
        elif opening[1] == "code_interpreter":
            texts.append(body.strip("\n"))
        at = end + len(_CLOSING)
    if at == 0:
        return content, "", None
    texts.append(content[at:].strip("\n"))
    return "\n\n".join(filter(None, texts)), "\n\n".join(filter(None, thoughts)), seconds


def _without_summary(body: str) -> str:
    # White space first and once: a search for it with the tag takes the square of its length.
    found = _SUMMARY.match(inner := body.lstrip())
    return inner[found.end() :] if found else body


def _unquoted(body: str) -> str:
    """The reasoning as it was: each line stands in a quote there, escaped in newer versions."""
    body = body.strip("\n")
    if body.startswith("&gt;"):
        # A character's number of more digits than Python reads isn't one.
        with suppress(ValueError):
            body = html.unescape(body)
    return _QUOTE_MARK.sub("", body).strip("\n")
