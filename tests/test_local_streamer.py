from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from tokenizers.decoders import DecodeStream

from llm.local_streamer import (
    REPLACEMENT,
    BoundedTextStreamer,
    GenerationStopped,
    IncrementalDecoder,
    decoder_for,
)
from tests.tiny_model import make_tiny_tokenizer

TEXTS = [
    "你好，世界！🙂 👨‍👩‍👧 é ไทย",
    "👨‍👩‍👧👨‍👩‍👧",
    "e\u0301 naïve Ünïcödé",
    "\n\n  \t\n",
    " leading and trailing ",
    "ภาษาไทยไม่มีช่องว่าง",
    "```python\nprint('🙂')\n```",
]


def byte_alphabet() -> dict[int, str]:
    """GPT-2's way to write each byte as one printable character."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    shifted = iter(range(256, 512))
    return {byte: chr(byte) if byte in kept else chr(next(shifted)) for byte in range(256)}


ALPHABET = byte_alphabet()


class ByteTokenizer:
    """One token a byte, and tokens of several bytes where a test names them."""

    def __init__(self, *pieces: bytes) -> None:
        words = [*(bytes([b]) for b in range(256)), *pieces]
        self.id_of = {word: number for number, word in enumerate(words)}
        vocab = {"".join(ALPHABET[b] for b in word): number for word, number in self.id_of.items()}
        self._tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
        self._tokenizer.decoder = decoders.ByteLevel()
        self._tokenizer.add_special_tokens(["<end>"])
        self.end_id: int = self._tokenizer.token_to_id("<end>")

    def ids(self, *pieces: bytes) -> list[int]:
        return [self.id_of[piece] for piece in pieces]

    def bytes_of(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


class FallbackTokenizer:
    """As Llama 2 and Gemma do: words with ▁ for the space, and bytes for what is no word."""

    def __init__(self) -> None:
        words = ["▁Hello", "▁world", "!", "▁", *(f"<0x{b:02X}>" for b in range(256))]
        vocab = {word: number for number, word in enumerate(words)}
        self._tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True))
        self._tokenizer.decoder = decoders.Sequence(
            [
                decoders.Replace("▁", " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
                decoders.Strip(" ", 1, 0),
            ]
        )

    def word(self, text: str) -> int:
        return int(self._tokenizer.token_to_id(text))

    def bytes_of(self, text: str | bytes) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return [self.word(f"<0x{byte:02X}>") for byte in data]


class SlowTokenizer:
    """A transformers tokenizer without a Rust part."""

    def decode(self, ids: list[int], **options: Any) -> str:
        assert options == {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return bytes(ids).decode(errors="replace")


def pieces(decoder: IncrementalDecoder, ids: list[int]) -> list[str]:
    return [decoder.push(token_id) for token_id in ids]


def row(*ids: int) -> torch.Tensor:
    return torch.tensor(ids)


@pytest.fixture
def started() -> Iterator[BoundedTextStreamer]:
    """A streamer over bytes whose prompt was put."""
    streamer = BoundedTextStreamer(ByteTokenizer(), capacity=2)
    streamer.put(torch.tensor([[1, 2, 3]]))
    yield streamer
    streamer.stop()


# Whole characters


@pytest.mark.parametrize("text", TEXTS)
def test_characters_split_over_tokens_come_whole_and_at_once(text: str) -> None:
    tokenizer = ByteTokenizer()
    decoder = decoder_for(tokenizer)
    shown = ""
    sent = b""
    for byte in text.encode():
        shown += decoder.push(byte)
        sent += bytes([byte])
        # All that is whole by now, and not a character more.
        assert shown == sent.decode(errors="ignore")
    assert shown == text


@pytest.mark.parametrize("text", TEXTS)
def test_a_trained_tokenizer_streams_exactly_the_text(text: str) -> None:
    tokenizer = make_tiny_tokenizer()
    ids = tokenizer.encode(text)
    assert "".join(pieces(decoder_for(tokenizer), ids)) == text


@pytest.mark.parametrize("text", TEXTS)
def test_a_slow_tokenizer_streams_exactly_the_text(text: str) -> None:
    assert "".join(pieces(decoder_for(SlowTokenizer()), list(text.encode()))) == text


@pytest.mark.parametrize("text", TEXTS)
def test_byte_fallback_streams_exactly_the_text(text: str) -> None:
    tokenizer = FallbackTokenizer()
    ids = [tokenizer.word("▁Hello"), *tokenizer.bytes_of(text)]
    assert "".join(pieces(decoder_for(tokenizer), ids)) == "Hello" + text


def test_spaces_between_words_are_kept_and_the_first_is_not_invented() -> None:
    tokenizer = FallbackTokenizer()
    ids = [tokenizer.word(word) for word in ("▁Hello", "▁world", "!", "▁", "▁Hello")]
    assert pieces(decoder_for(tokenizer), ids) == ["Hello", " world", "!", " ", " Hello"]


@pytest.mark.parametrize("given", ["", "!", "你好🙂", "你好你好", "🙂🙂🙂", "éééa🙂"])
@pytest.mark.parametrize("new", [" ", "你", "🙂 é"])
def test_a_text_that_is_gone_on_with_keeps_its_next_space_and_character(
    given: str, new: str
) -> None:
    tokenizer = FallbackTokenizer()
    world = tokenizer.word("▁world")
    decoder = decoder_for(tokenizer)
    decoder.follow([tokenizer.word("▁Hello"), *tokenizer.bytes_of(given)])
    ids = [*tokenizer.bytes_of(new), world, tokenizer.word("!")]
    assert "".join(pieces(decoder, ids)) == f"{new} world!"
    decoder.follow([world] * 3)
    assert pieces(decoder, [world, *tokenizer.bytes_of("你")]) == [" world", "", "", "你"]


@pytest.mark.parametrize(("goes_on", "said"), [(True, " world"), (False, "world")])
def test_an_answer_that_goes_on_begins_with_its_space(goes_on: bool, said: str) -> None:
    tokenizer = FallbackTokenizer()
    streamer = BoundedTextStreamer(tokenizer, goes_on=goes_on)
    streamer.put(torch.tensor([[tokenizer.word("▁Hello")]]))
    streamer.put(row(tokenizer.word("▁world")))
    streamer.end()
    assert list(streamer) == [said]


def test_special_tokens_are_not_shown_and_do_not_eat_the_next_space() -> None:
    tokenizer = FallbackTokenizer()
    tokenizer._tokenizer.add_special_tokens(["<end>"])
    hello, world, end = (tokenizer.word(word) for word in ("▁Hello", "▁world", "<end>"))
    ids = [hello, *[end] * 20, world]
    assert "".join(pieces(decoder_for(tokenizer), ids)) == "Hello world"


def test_what_is_whole_in_a_token_is_shown_though_its_end_is_cut() -> None:
    tokenizer = ByteTokenizer(b" \xf0\x9f", b"\x99\x82!")
    ids = tokenizer.ids(b" \xf0\x9f", b"\x99\x82!")
    assert pieces(decoder_for(tokenizer), ids) == [" ", "🙂!"]
    # tokenizers' own stream would hold the space back, and lose it where the answer ends there.
    assert DecodeStream(skip_special_tokens=True).step(tokenizer._tokenizer, ids[0]) is None


@pytest.mark.parametrize("text", TEXTS)
def test_an_answer_cut_anywhere_keeps_every_whole_character(text: str) -> None:
    data = text.encode()
    for end in range(len(data) + 1):
        decoder = decoder_for(ByteTokenizer())
        assert "".join(pieces(decoder, list(data[:end]))) == data[:end].decode(errors="ignore")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xffb", "ab"),
        (b"\xff\xfe\xfd", ""),
        (b"ok\xf0\x9f", "ok"),
        (b"\xc3(", "("),
        (b"\xf0\x9fa\xf0\x9f\x99\x82", "a🙂"),
        (b"a" + b"\x80" * 40 + "é".encode(), "aé"),
        (b"\x99" * 9 + "🙂".encode(), "🙂"),
        (b"\xed\xa0\x80x", "x"),
    ],
)
def test_bytes_that_are_no_character_are_never_shown(data: bytes, text: str) -> None:
    assert "".join(pieces(decoder_for(ByteTokenizer()), list(data))) == text


def test_a_line_break_before_cut_bytes_is_kept_with_byte_fallback() -> None:
    tokenizer = FallbackTokenizer()
    ids = [tokenizer.word("▁Hello"), *tokenizer.bytes_of(b"\n\xf0\x9f")]
    assert "".join(pieces(decoder_for(tokenizer), ids)) == "Hello\n"


def test_random_bytes_never_show_a_replacement_mark_and_keep_what_is_valid() -> None:
    dice = random.Random(7)
    for _ in range(200):
        data = bytes(dice.choice([dice.randrange(256), *"é🙂 a".encode()]) for _ in range(60))
        shown = "".join(pieces(decoder_for(ByteTokenizer()), list(data)))
        assert REPLACEMENT not in shown
        assert shown == data.decode(errors="ignore")


def test_the_decoders_window_stays_short_whatever_comes() -> None:
    longest = 0
    tokenizer = ByteTokenizer()

    def decode(ids: Any) -> str:
        nonlocal longest
        longest = max(longest, len(ids))
        return str(tokenizer._tokenizer.decode(ids, skip_special_tokens=True))

    decoder = IncrementalDecoder(decode)
    pieces(decoder, [*b"abc", *b"\xff" * 500, *[tokenizer.end_id] * 500, *"🙂é".encode() * 100])
    assert longest < 24


# The queue


def test_the_prompt_is_not_part_of_the_answer(started: BoundedTextStreamer) -> None:
    started.put(row(*b"A"))
    started.end()
    assert list(started) == ["A"]
    assert started.generated_tokens == 1


def test_a_slow_reader_holds_the_producer_and_loses_nothing() -> None:
    streamer = BoundedTextStreamer(ByteTokenizer(), capacity=2)
    text = "The quick brown fox"
    ahead: list[int] = []

    def produce() -> None:
        streamer.put(torch.tensor([[0]]))
        for byte in text.encode():
            streamer.put(row(byte))
            ahead.append(byte)
        streamer.end()

    producer = threading.Thread(target=produce)
    producer.start()
    got = ""
    for piece in streamer:
        got += piece
        # The queue's two, and the one that this read let in.
        assert len(ahead) <= len(got) + 3
    producer.join(10)
    assert got == text


def test_a_producer_that_waits_for_room_ends_when_stopped(started: BoundedTextStreamer) -> None:
    outcome: list[type[GenerationStopped]] = []
    full = threading.Event()

    def produce() -> None:
        started.put(row(*b"ab"))
        full.set()
        try:
            started.put(row(*b"c"))
        except GenerationStopped:
            outcome.append(GenerationStopped)

    producer = threading.Thread(target=produce)
    producer.start()
    assert full.wait(10)
    started.stop()
    producer.join(10)
    assert not producer.is_alive()
    assert outcome == [GenerationStopped]


def test_a_reader_that_waits_ends_when_stopped(started: BoundedTextStreamer) -> None:
    got: list[list[str]] = []
    reader = threading.Thread(target=lambda: got.append(list(started)))
    reader.start()
    started.stop()
    reader.join(10)
    assert got == [[]]


def test_the_next_put_after_a_stop_ends_generating(started: BoundedTextStreamer) -> None:
    started.stop()
    with pytest.raises(GenerationStopped):
        started.put(row(*b"a"))


def test_a_stop_before_the_prompt_ends_generating_too() -> None:
    streamer = BoundedTextStreamer(ByteTokenizer())
    streamer.stop()
    with pytest.raises(GenerationStopped):
        streamer.put(torch.tensor([[1, 2]]))


def test_a_stop_after_all_was_read_changes_nothing(started: BoundedTextStreamer) -> None:
    started.put(row(*b"a"))
    started.end()
    assert list(started) == ["a"]
    started.stop()
    assert not started.stopped


def test_a_failure_reaches_a_waiting_reader_after_the_text_before_it(
    started: BoundedTextStreamer,
) -> None:
    started.put(row(*b"a"))
    got: list[object] = []

    def read() -> None:
        try:
            for piece in started:
                got.append(piece)
        except ValueError as error:
            got.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    error = ValueError("broken")
    started.fail(error)
    reader.join(10)
    assert got == ["a", error]


def test_two_sequences_at_once_are_refused(started: BoundedTextStreamer) -> None:
    with pytest.raises(ValueError, match="one sequence"):
        started.put(torch.tensor([[1], [2]]))
