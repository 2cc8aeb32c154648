"""What may be said around an English question without changing its answer; see same_question_en."""

from __future__ import annotations

from llm.same_question_en_tokens import EXACT
from llm.same_question_en_words import (
    ASKING,
    CASELESS,
    CLOSINGS,
    OPENINGS,
    PERSONAL,
    POINTERS,
    QUESTION_WORDS,
    WISHED,
    WISHES,
)

_FRAMING = frozenset((*OPENINGS, *ASKING, *CLOSINGS))
_SIGNS = (",", ":", ";", "-", "–", "—")


def unframed(words: list[str]) -> tuple[list[str], bool]:
    """Without framing; and whether what went asked for something."""
    asked = False
    while True:
        before = words
        while words and words[0] in _SIGNS:
            words = words[1:]
        for opening in OPENINGS:
            if not _begins(words, opening) or not _ends_there(words, opening):
                continue
            # "Hello, what is that?": there the greeting may be what is asked about.
            if not POINTERS & set(words[len(opening) :]):
                words = words[len(opening) :]
        for asking in ASKING:
            rest = words[len(asking) :]
            if _begins(words, asking) and rest and _asks(rest) and not _is_own(asking, rest):
                words = rest[1:] if rest[0] in _SIGNS else rest
                words, asked = ["whether" if words[0] == "if" else words[0], *words[1:]], True
                break
        for wish in WISHES:
            rest = words[len(wish) :]
            if _begins(words, wish) and rest and rest[0] in WISHED:
                words, asked = rest[:-2] if rest[-2:] == ["for", "me"] else rest, True
                break
        for closing in CLOSINGS:
            apart = words[-len(closing) - 1 : -len(closing)]
            ends = words[-len(closing) :] == list(closing) and (not apart or apart[0] in _SIGNS)
            if ends and not POINTERS & set(words):
                words = words[: -len(closing)]
        while words and words[-1] in _SIGNS:
            words = words[:-1]
        if words == before:
            return words, asked


def is_framing(words: list[str]) -> bool:
    """Whether words say nothing but what may stand around a question."""
    said: list[tuple[str, ...]] = [()]
    for word in words:
        if word == ",":
            said.append(())
        else:
            said[-1] += (word,)
    return all(part in _FRAMING for part in said)


def _is_own(asking: tuple[str, ...], rest: list[str]) -> bool:
    """Whether an asking is a question or a command of its own.

    "Do you know how to swim?" and "do you know where you live?" are for yes or no; "tell me when
    it is ready" is for later.
    """
    if "tell" in asking and rest[0] in ("when", "if"):
        return True
    if "know" in asking and {"you", "anyone", "anybody"} & set(asking) and "to" not in asking[1:]:
        return rest[:2] == ["how", "to"] or not PERSONAL.isdisjoint(rest)
    if asking[0] == "do" and (rest[:2] == ["how", "to"] or not PERSONAL.isdisjoint(rest)):
        return True
    return "show" in asking and rest[:2] not in (["how", "to"], ["how", "do"], ["how", "can"])


def _begins(words: list[str], phrase: tuple[str, ...]) -> bool:
    return tuple(words[: len(phrase)]) == phrase


def _ends_there(words: list[str], opening: tuple[str, ...]) -> bool:
    """Whether an opening is one: nothing, a mark or a question follows it."""
    if len(words) == len(opening) or words[0] in ("please", "kindly"):
        return True
    after = words[len(opening)]
    if opening == ("so",) and len(words) < 4:
        return False
    if after in _SIGNS:
        return True
    # "Question why we sleep" is a book's advice.
    return opening[-1] not in ("question", "help") and (
        _asks(words[len(opening) :]) or after == "please"
    )


def _asks(words: list[str]) -> bool:
    """Whether words go on as a question."""
    if words[0] in (",", ":"):
        words = words[1:]
    return bool(words) and (words[0] in QUESTION_WORDS or words[0] in ("if", "whether"))


def as_question(words: list[str]) -> list[str]:
    """ "How many people live in X" as "what is the population of X"."""
    if words[:5] == ["how", "many", "people", "live", "in"] and _is_name(words[5:]):
        return ["what", "is", "the", "population", "of", *words[5:]]
    return words


def _is_name(words: list[str]) -> bool:
    return len(words) == 1 and (words[0] in CASELESS or words[0].startswith(EXACT))
