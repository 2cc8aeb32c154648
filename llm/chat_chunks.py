"""What a chunk of a chat-completions stream says, read without trusting it.

Servers differ and err: every field may be missing, null or of another type, and none of that
may end an answer. Chunks are plain decoded JSON here; no vendor's classes.

Source: https://platform.openai.com/docs/api-reference/chat-streaming, and what vLLM, llama.cpp
and `transformers serve` were seen to send.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any

from llm.reasoning import ReasoningSplitter
from llm.served_values import told_count, told_name, whole_text
from llm.types import Delta, DeltaKind, FinishReason, Usage

_REASONING = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class ChunkReader:
    """Reads one stream's chunks in order, and remembers what they said beside text.

    Args:
        goes_on: the server goes on with an answer's text: tags in it are text.
        trimmed: white space at that text's end which the model wasn't shown: as far as it comes
            again, it is left out.

    Attributes:
        finish_reason: the server's own word, None until it came.
        usage: the newest counts.
        text_seen: whether any text or reasoning came.
        error: the error object that a chunk was, where one was.
        system_fingerprint: what the server calls its engine and configuration; empty until told.
    """

    goes_on: InitVar[bool] = False
    trimmed: str = ""
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    text_seen: bool = False
    error: Mapping[str, Any] | None = None
    system_fingerprint: str = ""
    _halves: dict[DeltaKind, str] = field(default_factory=dict)
    _splitter: ReasoningSplitter = field(init=False)

    def __post_init__(self, goes_on: bool) -> None:
        self._splitter = ReasoningSplitter(goes_on=goes_on)

    def read(self, chunk: object) -> Iterator[Delta]:
        """The chunk's text and reasoning; never half a character.

        A reasoning parser in the server sends the two apart; without one, tags in the text say
        which is which.
        """
        if not isinstance(chunk, Mapping):
            return
        if chunk.get("object") == "error":
            self.error = chunk
            return
        self._read_usage(chunk.get("usage"))
        self.system_fingerprint = told_name(chunk, "system_fingerprint") or self.system_fingerprint
        choice = _first_choice(chunk.get("choices"))
        if choice is None:
            return
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            reasoning = next((text for key in _REASONING if (text := _text(delta.get(key)))), "")
            for kind, text in (("reasoning", reasoning), ("text", _text(delta.get("content")))):
                if whole := self._whole(kind, text):  # type: ignore[arg-type]
                    self.text_seen = True
                    if kind == "reasoning":
                        self._splitter.told_apart()
                        yield Delta(whole, "reasoning")
                    else:
                        yield from self._splitter.push(self._untrimmed(whole))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason

    def rest(self) -> list[Delta]:
        """What was held back, since it might have become a tag; ask when no chunk comes any more."""
        return self._splitter.end()

    def finish(self) -> FinishReason:
        """The finish reason in this app's words; what it has no word for is a stop."""
        return "length" if self.finish_reason == "length" else "stop"

    def _untrimmed(self, text: str) -> str:
        """The text after what stands already of `trimmed`."""
        while self.trimmed and text.startswith(self.trimmed[0]):
            self.trimmed, text = self.trimmed[1:], text[1:]
        if text:
            self.trimmed = ""
        return text

    def _read_usage(self, usage: object) -> None:
        if isinstance(usage, Mapping):
            prompt = told_count(usage.get("prompt_tokens"))
            completion = told_count(usage.get("completion_tokens"))
            self.usage = Usage(
                self.usage.prompt_tokens if prompt is None else prompt,
                self.usage.completion_tokens if completion is None else completion,
            )

    def _whole(self, kind: DeltaKind, text: str) -> str:
        """`text` in whole characters.

        JSON may carry an emoji as two escapes and a server may cut between them; the first half
        waits for the second, and a half that stays alone is left out.
        """
        if not text:
            return text
        text = self._halves.pop(kind, "") + text
        if "\ud800" <= text[-1] <= "\udbff":
            self._halves[kind] = text[-1]
            text = text[:-1]
        return whole_text(text)


def _first_choice(choices: object) -> Mapping[str, Any] | None:
    """Choice 0 wherever it stands in the list; one that bears no index counts as it."""
    if not isinstance(choices, list):
        return None
    for choice in choices:
        if isinstance(choice, Mapping) and not choice.get("index"):
            return choice
    return None


def _text(content: object) -> str:
    """Content as text: a string, or the text of a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return ""
