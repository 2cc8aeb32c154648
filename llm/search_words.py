"""The words of a text as they are indexed, and a typed search as words to look for.

A word is a run of letters and digits; where a script is written without spaces, each character is
one. A phrase is words in a row, whatever stands between them.

A single Chinese character is in nearly every text, so the two of a Chinese word say little by
themselves. What is indexed of such a character is it with its follower, a *pair*: a word of two
characters is then one entry of the index, found as quickly as an English word is.
Source: https://nlp.stanford.edu/IR-book/html/htmledition/biword-indexes-1.html
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass

MAX_INDEXED_CHARS = 100_000
"""Of a longer text the rest isn't found. PostgreSQL takes a megabyte of words of a text, and a
pair has up to 8 bytes."""
MAX_WORD_CHARS = 64
"""Of a longer word, in a text and in a search, the rest is left out."""
MAX_QUERY_CHARS = 500
"""What is typed beyond that is left out: more is found, never less."""

_CHARACTERS = (
    "々〆〇〡-〩〸-〻㐀-䶿一-鿿豈-﫿\U00020000-\U0003fffd"  # Han
    "ぁ-ゖ゙-ゟァ-ヺー-ヿㇰ-ㇿㄅ-ㄯㆠ-ㆿ"  # kana, bopomofo
    "ᄀ-ᇿㄱ-ㆎꥠ-ꥼ가-힣ힰ-ퟻ"  # hangul: its particles stick to the words
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecd"  # Thai, Lao
    "\u1000-\u103f\u1050-\u109d\u1780-\u17d3"  # Burmese, Khmer
)
_UNSPACED = re.compile(f"[{_CHARACTERS}]")
_WORD = re.compile(f"[{_CHARACTERS}]|[^{_CHARACTERS} ]+")
_RUN = re.compile(f"[{_CHARACTERS}]+|[^{_CHARACTERS} ]+")
_QUOTE = re.compile('["“”„«»「」『』]')
_BEGINNING = f"(?<![^{_CHARACTERS} ])"
_END = f"(?![^{_CHARACTERS} ])"
_ZERO_WIDTH_SPACE = 0x200B
_VARIATION_SELECTORS = {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}


class _Letters(dict[int, int | None]):
    """For `str.translate`: letters, digits and marks stay, all else is a space. Fills itself."""

    def __missing__(self, code: int) -> int | None:
        category = unicodedata.category(chr(code))
        kept: int | None = code if category[0] in "LNM" else ord(" ")
        # A soft hyphen, a joiner, the choice of a glyph don't part what they stand in.
        if (category == "Cf" and code != _ZERO_WIDTH_SPACE) or code in _VARIATION_SELECTORS:
            kept = None
        self[code] = kept
        return kept


_letters = _Letters()


def segmented(text: str) -> str:
    """What is indexed of a text: words and pairs with a space after each; empty without any.

    A text is looked through up to `MAX_INDEXED_CHARS`.

    Thread-safety: any thread.
    """
    words = _words(readable(text))
    return "".join(f"{entry} " for entry in _entries(words))


def readable(text: str) -> str:
    """The text as it is read for its words: folded, and spaces in place of all but letters.

    It may be longer or shorter than the text, of which `MAX_INDEXED_CHARS` are taken.
    """
    return _folded(text, MAX_INDEXED_CHARS).translate(_letters)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Entries that follow one another in a segmented text.

    Args:
        entries: words and pairs.
        open: whether the last entry may go on.
    """

    entries: tuple[str, ...]
    open: bool = False

    @property
    def needle(self) -> str:
        """What a segmented text with a space before it holds where it holds the phrase."""
        return " " + " ".join(self.entries) + ("" if self.open else " ")

    @property
    def pattern(self) -> re.Pattern[str]:
        """The phrase in a text that is `readable`."""
        *before, last = self.entries
        # Of a pair the second character is the next entry's first; only the last one's is not.
        words = [entry[0] if _is_unspaced(entry) else entry for entry in before]
        words += last if _is_unspaced(last) else [last]
        begun = "" if _is_unspaced(words[0]) else _BEGINNING
        ended = "" if self.open or _is_unspaced(last) or len(last) == MAX_WORD_CHARS else _END
        return re.compile(begun + " *".join(map(re.escape, words)) + ended)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What must all occur in a text that is found.

    Args:
        phrases: none means that there is nothing to search for.
    """

    phrases: tuple[Phrase, ...] = ()

    @classmethod
    def read(cls, text: str) -> SearchQuery:
        """What a person typed: words, runs of characters, phrases in quotation marks.

        The last word outside quotations is taken as the beginning of one, and so is the last of
        a quotation that isn't closed yet. Nothing else has a meaning.
        """
        pieces = _QUOTE.split(_folded(text, MAX_QUERY_CHARS))
        phrases: list[list[str]] = []
        growing = -1
        for number, piece in enumerate(pieces):
            letters = piece.translate(_letters)
            if number % 2 == 0:
                for run in _RUN.findall(letters):
                    phrases.append(_words(run))
                    if not _is_unspaced(run):
                        growing = len(phrases) - 1
            elif words := _words(letters):
                phrases.append(words)
                if number == len(pieces) - 1:
                    growing = len(phrases) - 1
        read = (_phrase(words, number == growing) for number, words in enumerate(phrases))
        return cls(tuple(dict.fromkeys(read)))


def _phrase(words: list[str], growing: bool) -> Phrase:
    entries = _entries(words)
    if not _is_unspaced(words[-1]):
        return Phrase(tuple(entries), growing)
    # The last pair has the last character in it; what follows that one is not known.
    if len(words) > 1 and _is_unspaced(words[-2]):
        return Phrase(tuple(entries[:-1]))
    return Phrase(tuple(entries), open=True)


def _entries(words: list[str]) -> list[str]:
    followers = itertools.chain(words[1:], [""])
    return [
        word + follower if _is_unspaced(word) and _is_unspaced(follower) else word
        for word, follower in zip(words, followers, strict=False)
    ]


def _is_unspaced(word: str) -> bool:
    return _UNSPACED.match(word) is not None


def _words(letters: str) -> list[str]:
    return [word[:MAX_WORD_CHARS] for word in _WORD.findall(letters)]


def _folded(text: str, limit: int) -> str:
    return unicodedata.normalize("NFKC", text[:limit]).casefold()[:limit]
