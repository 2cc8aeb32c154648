"""Conversations of ChatGPT's data export, `conversations.json` and its numbered parts.

Taken along are what the page there shows: questions, answers, code that was run and what it
printed, what was thought. Left out are calls of other tools and what they returned, hidden
messages, and marks that only the page there understands; pictures and recordings are counted.

Source: exports of 2023 to 2026, as programs that read them describe them; there is no
documentation of the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llm.import_notes import Notes, duration_s, mapping, moment_s, name, sequence
from llm.message_tree import MessageTree, Node
from llm.types import FinishReason

_INTERNAL = frozenset(
    {
        "user_editable_context",
        "model_editable_context",
        "tether_browsing_display",
        "tether_browsing_code",
        "tether_quote",
        "sonic_webpage",
        "system_error",
        "app_pairing_content",
    }
)
_FINISHES: dict[str, FinishReason] = {
    "stop": "stop",
    "max_tokens": "length",
    "interrupted": "abort",
}
_MARK = re.compile("[ \t]?\ue200([^\ue200\ue201]*)\ue201")
"""A reference: a kind and what it refers to, with U+E202 between."""
_MARK_PARTS = re.compile("[\ue200-\ue206]")
_SOURCE_MARK = re.compile(r"【[^【】†\n]{0,80}†[^【】\n]{0,200}】")
_TICKS = re.compile("`+")


def is_chatgpt(entry: object) -> bool:
    """Whether this is a conversation of ChatGPT."""
    return isinstance(entry, dict) and isinstance(entry.get("mapping"), dict)


def read_chatgpt(entry: Mapping[str, Any], notes: Notes) -> MessageTree:
    """The conversation's messages."""
    nodes, children = [], {}
    for key, value in entry["mapping"].items():
        node = mapping(value)
        children[key] = [each for each in sequence(node.get("children")) if isinstance(each, str)]
        shown = _node(key, mapping(node.get("message")), notes)
        parent = node.get("parent")
        nodes.append(replace(shown, parent=parent) if isinstance(parent, str) else shown)
    current = entry.get("current_node")
    return MessageTree(
        source="chatgpt",
        own_id=name(entry.get("conversation_id")) or name(entry.get("id")),
        title=name(entry.get("title")),
        nodes=nodes,
        children=children,
        current=current if isinstance(current, str) else "",
        created_s=moment_s(entry.get("create_time")),
        updated_s=moment_s(entry.get("update_time")),
        pinned=entry.get("is_starred") is True,
    )


def _node(key: str, message: Mapping[str, Any], notes: Notes) -> Node:
    node = Node(key, created_s=moment_s(message.get("create_time")))
    about = mapping(message.get("metadata"))
    content = message.get("content")
    content = {"parts": [content]} if isinstance(content, str) else mapping(content)
    hidden = message.get("weight") == 0 or about.get("is_visually_hidden_from_conversation") is True
    if hidden or name(content.get("content_type")) in _INTERNAL:
        return node
    role = mapping(message.get("author")).get("role")
    if role == "user":
        return replace(node, role="user", text=_text(content, notes))
    if role == "assistant":
        return _answer(node, message, content, about, notes)
    if role == "tool":
        text = _printed(content, notes)
        return replace(node, role="assistant", text=text) if text else node
    if role == "system" and (text := _text(content, notes)).strip():
        return replace(node, role="system", text=text)
    return node


def _answer(
    node: Node,
    message: Mapping[str, Any],
    content: Mapping[str, Any],
    about: Mapping[str, Any],
    notes: Notes,
) -> Node:
    details = mapping(about.get("finish_details"))
    node = replace(
        node,
        role="assistant",
        model=name(about.get("model_slug")),
        finish=_FINISHES.get(name(details.get("type"))),
        reasoning_s=duration_s(about.get("finished_duration_sec")),
    )
    kind = content.get("content_type")
    asked = message.get("recipient")
    to_python = asked == "python"
    if kind == "thoughts":
        return replace(node, reasoning=_thoughts(content, notes))
    if kind == "reasoning_recap":
        return node
    if kind == "code" and (to_python or asked in (None, "", "all")):
        language = name(content.get("language"))
        language = "" if language == "unknown" else language
        code = notes.text(content.get("text")) or _text(content, notes)
        return replace(node, text=_fenced(code, language or ("python" if to_python else "")))
    if asked not in (None, "", "all"):
        return node
    text = _without_marks(_text(content, notes), about)
    if message.get("channel") == "analysis":
        return replace(node, reasoning=text)
    return replace(node, text=text)


def _text(content: Mapping[str, Any], notes: Notes) -> str:
    """All that is text in a message; what isn't is counted."""
    found = []
    for part in sequence(content.get("parts")):
        if isinstance(part, str):
            found.append(notes.text(part))
            continue
        text = notes.text(mapping(part).get("text"))
        if text:
            found.append(text)
        elif part:
            notes.left_out += 1
    if not found:
        found.append(notes.text(content.get("text")))
    return "\n\n".join(text for text in found if text.strip())


def _printed(content: Mapping[str, Any], notes: Notes) -> str:
    """What a tool's answer shows: what a program printed. Pictures are counted."""
    if content.get("content_type") == "execution_output":
        return _fenced(notes.text(content.get("text")), "")
    if content.get("content_type") == "multimodal_text":
        parts = sequence(content.get("parts"))
        notes.left_out += sum(1 for part in parts if isinstance(part, dict))
    return ""


def _thoughts(content: Mapping[str, Any], notes: Notes) -> str:
    found = []
    for thought in sequence(content.get("thoughts")):
        summary = notes.text(mapping(thought).get("summary")).strip()
        told = notes.text(mapping(thought).get("content")).strip()
        found += [f"**{summary}**" if summary and "\n" not in summary else summary, told]
    return "\n\n".join(text for text in found if text)


def _fenced(code: str, language: str) -> str:
    if not code.strip():
        return ""
    fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(code)), default=0))
    language = language if language.isalnum() else ""
    return f"{fence}{language}\n{code.rstrip()}\n{fence}"


def _without_marks(text: str, about: Mapping[str, Any]) -> str:
    """Marks for sources as links, where the file tells them; else left out."""
    if "\ue200" in text:
        links: dict[str, str] = {}
        for told in map(mapping, sequence(about.get("content_references"))):
            mark, link = told.get("matched_text"), told.get("alt")
            if isinstance(mark, str) and isinstance(link, str):
                links[mark.strip()] = link
        text = _MARK.sub(lambda mark: _told(mark, links), text)
    text = _SOURCE_MARK.sub("", text) if "†" in text else text
    return _MARK_PARTS.sub("", text)


def _told(mark: re.Match[str], links: Mapping[str, str]) -> str:
    space = mark[0][: mark.start(1) - mark.start() - 1]
    link = links.get(mark[0].strip(), "").strip()
    kind, _, rest = mark[1].partition("\ue202")
    if not link and kind == "url":
        link = rest.partition("\ue202")[0].strip()
    if not link and kind == "entity":
        link = _entity(rest)
    return f"{space}{link}" if link else ""


def _entity(told: str) -> str:
    """What a thing is called: the second of a list's values."""
    try:
        values = json.loads(told)
    except (ValueError, RecursionError):
        return ""
    return name(values[1]) if isinstance(values, list) and len(values) > 1 else ""
