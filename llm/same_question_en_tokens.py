"""An English question as words: quoted text, code and numbers apart, capitals as they count."""

from __future__ import annotations

import re

from llm.same_question_en_words import (
    ABOUT_LETTERS,
    CASELESS,
    CONTRACTIONS,
    KEEPS_S,
    OF_LANGUAGE,
    ONES,
    PHRASES,
    STARTING,
    SYNONYMS,
    TENS,
    listed,
)

EXACT = "="
"""Before a token that is compared as it is written."""


_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*'?")


_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|`+[^`]*`+|(?<![\w\'])\'[^\']+\'(?!\w)')


_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")


_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)(km|cm|mm|kg|mg|ml|%)")


_ABBREVIATIONS = listed("vs. mr. mrs. ms. dr. st. e.g. i.e. etc. approx. p.m. a.m. pct.")


def tokens_of(text: str) -> list[tuple[str, str]]:
    """Words, numbers, marks, and what is compared exactly: quoted text and code."""
    found: list[tuple[str, str]] = []
    at = 0
    for quoted in _QUOTED.finditer(text):
        found += _plain(text[at : quoted.start()])
        found.append((quoted[0], "quoted"))
        at = quoted.end()
    return found + _plain(text[at:])


def _plain(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for chunk in text.split():
        found += _chunk(chunk)
    return found


def _chunk(chunk: str) -> list[tuple[str, str]]:
    if chunk.lower() in _ABBREVIATIONS:
        return [(chunk.replace(".", ""), "word")]
    core = chunk.rstrip(".,;:!?")
    opened = core.startswith("(")
    bare = core.removeprefix("(")
    closed = bare.endswith(")") and "(" not in bare
    bare = bare.removesuffix(")") if closed else bare
    marks = chunk[len(core) :]
    if _WORD.fullmatch(bare):
        middle = [(bare, "word")]
    elif _NUMBER.fullmatch(bare) and "!" not in marks:
        middle = [(bare.replace(",", ""), "number")]
    elif (split := _WITH_UNIT.fullmatch(bare)) and "!" not in marks:
        unit = "percent" if split[2] == "%" else split[2]
        middle = [(split[1], "number"), (unit, "word")]
    elif not core:
        return [(chunk, "code" if set(chunk) & set(".?!") else "mark")]
    else:  # code, or something like it: only a sentence's own mark is no part of it
        end = re.search(r"[,;:]$|\.$|\?$", chunk)
        kept = chunk[: end.start()] if end else chunk
        return [(kept, "code"), *([(end[0], "mark")] if end else [])]
    return [
        *([("(", "mark")] if opened else []),
        *middle,
        *([(")", "mark")] if closed else []),
        # One mark ends a sentence; "n!?" and "wait..." have more than that to say.
        *([(marks, "mark" if len(marks) == 1 else "code")] if marks else []),
    ]


def sentences_of(tokens: list[tuple[str, str]]) -> list[tuple[list[tuple[str, str]], str]]:
    """Sentences, each with its closing mark, or nothing.

    Only a single sign directly after a word is one: in "git add ." it stands for itself.
    """
    parts: list[tuple[list[tuple[str, str]], str]] = [([], "")]
    for token, kind in tokens:
        if kind == "mark" and token in (".", "?", "!"):
            parts[-1] = (parts[-1][0], token)
            parts.append(([], ""))
        else:
            parts[-1][0].append((token, kind))
    return [part for part in parts if part[0]]


def spelled(tokens: list[tuple[str, str]], about_words: bool) -> list[str]:
    """Each token as it is compared: lower case, contractions written out, numbers as digits."""
    words: list[str] = []
    for place, (token, kind) in enumerate(tokens):
        if kind == "number" or kind == "mark":
            words.append(token)
        elif kind != "word":
            words.append(EXACT + token)
        elif token.lower() in ("am", "pm") and place and tokens[place - 1][1] in ("number", "code"):
            words.append(f"o'clock_{token.lower()}")
        else:
            # A python is a snake, but a python list isn't.
            before = tokens[place - 1][0].lower() if place else ""
            after = tokens[place + 1][0].lower() if place + 1 < len(tokens) else ""
            if before in ("a", "an") and token.lower() in CASELESS and after not in OF_LANGUAGE:
                words.append(token if token.islower() else EXACT + token)
            else:
                words += _cased(token, first=not before or before == ":").split()
    if about_words:
        return words
    if not {word.lower() for word, _ in tokens} & ABOUT_LETTERS and not _to_be_written(words):
        replaced = [_synonym(word) for word in words]
        # "is it color or colour": where both stand, their difference is the question
        if len(set(replaced)) == len(set(words)):
            words = _numbers(replaced)
    return _phrased(words)


def _to_be_written(words: list[str]) -> bool:
    """Whether "how do I write color" is asked, not "how do I write a loop"."""
    return any(
        word in ("write", "writes", "written", "writing", "type")
        and after not in ("a", "an", "the")
        for word, after in zip(words, [*words[1:], ""], strict=True)
    )


def _synonym(word: str) -> str:
    if word in SYNONYMS:
        return SYNONYMS[word]
    if word.endswith("s") and word[:-1] in SYNONYMS and word not in KEEPS_S:
        return SYNONYMS[word[:-1]] + "s"
    return word


def _cased(token: str, first: bool) -> str:
    if token.lower().endswith("'s") and token.lower() not in CONTRACTIONS:
        return f"{_cased(token[:-2], first)} 's"
    lower = token.lower()
    plain = token == lower or (token in ("I", "A") if first else token == "I")
    plain = plain or token.startswith(("I'", "I’")) or lower in CASELESS
    plain = plain or (first and lower in STARTING and token[1:] == token[1:].lower())
    if not plain:
        return EXACT + token
    return CONTRACTIONS.get(lower, lower)


def _numbers(words: list[str]) -> list[str]:
    """Number words as digits, where they stand alone.

    Two in a row stay as they are: "20 five pound weights" and "twenty five pound weights" may be
    twenty weights or those of 25 pounds. So does "one", which is mostly a pronoun.
    """
    values = [_number(word) for word in words]
    found: list[str] = []
    for place, word in enumerate(words):
        around = (*values[max(place - 1, 0) : place], *values[place + 1 : place + 2])
        value = values[place]
        alone = value is not None and not any(other is not None for other in around)
        spelled_out = not word[:1].isdigit() and word != "one"
        found.append(str(value) if alone and spelled_out else word)
    return found


def _number(word: str) -> int | None:
    """What a number word says; nothing in particular for digits, None for any other word."""
    if word[:1].isdigit():
        return 0
    tens, _, ones = word.partition("-")
    if tens in TENS and ones in ONES and 0 < ONES[ones] < 10:
        return TENS[tens] + ONES[ones]
    return TENS.get(word, ONES.get(word))


def _phrased(words: list[str]) -> list[str]:
    found: list[str] = []
    at = 0
    while at < len(words):
        for phrase, one in PHRASES.items():
            if tuple(words[at : at + len(phrase)]) == phrase:
                found += one.split()
                at += len(phrase)
                break
        else:
            found.append(words[at])
            at += 1
    return found
