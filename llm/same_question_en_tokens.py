"""An English question as words: quoted text, code and numbers apart, capitals as they count."""

from __future__ import annotations

import re

from llm.same_question_en_words import (
    ACRONYMS,
    AUXILIARIES,
    CANONICAL,
    CONTRACTIONS,
    NAMES,
    NO_PARTICIPLES,
    PARTICIPLES,
    QUESTION_WORDS,
    STARTING,
    listed,
)

EXACT = "="
"""Before a token that is compared as it is written."""

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*'?")
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|`+[^`]*`+|(?<![\w\'])\'[^\']+\'(?!\w)')


def tokens_of(text: str) -> list[tuple[str, str]]:
    """Words, marks, and what is compared exactly: quoted text, numbers and code."""
    found: list[tuple[str, str]] = []
    at = 0
    for quoted in _QUOTED.finditer(text):
        found += _plain(text[at : quoted.start()])
        found.append((quoted[0], "quoted"))
        at = quoted.end()
    if found and text[at:] in (".", "?"):  # right behind a quotation it ends the sentence
        return [*found, (text[at:], "mark")]
    return found + _plain(text[at:])


def _plain(text: str) -> list[tuple[str, str]]:
    return [token for chunk in text.split() for token in _chunk(chunk)]


def _chunk(chunk: str) -> list[tuple[str, str]]:
    core = chunk.rstrip(".,;:!?")
    marks = chunk[len(core) :]
    if _WORD.fullmatch(core):
        # One mark ends a sentence; "n!?" and "wait..." have more than that to say.
        return [
            (core, "word"),
            *([(marks, "mark" if len(marks) == 1 else "code")] if marks else []),
        ]
    if not core:
        return [(chunk, "code" if set(chunk) & set(".?!") else "mark")]
    end = re.search(r"[,;:]$|\.$|\?$", chunk)  # only a sentence's own mark is no part of code
    kept = chunk[: end.start()] if end else chunk
    return [(kept, "code"), *([(end[0], "mark")] if end else [])]


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


def spelled(tokens: list[tuple[str, str]], to_the_letter: bool) -> list[str]:
    """Each token as it is compared: plain words in lower case, contractions written out.

    Args:
        to_the_letter: only the capital of the first word goes.
    """
    perfect = any(kind == "word" and is_participle(word) for word, kind in tokens)
    done = _needs_object(tokens)
    words: list[str] = []
    for place, (token, kind) in enumerate(tokens):
        before = tokens[place - 1][0].lower() if place else ""
        after = tokens[place + 1][0].lower() if place + 1 < len(tokens) else ""
        if kind != "word":
            words.append(token if kind == "mark" else EXACT + token)
        elif to_the_letter:
            words.append(_cased(token) if not place else token)
        elif token == "I" and not _is_pronoun(before, after):
            words.append(EXACT + token)
        else:
            word = _cased(token, first=not before or before == ":")
            # "Who's called" may be "who has called"
            kept = perfect and word.endswith("s") and not (done and place == 0)
            full = "i would" if (word, after) == ("i'd", "like") else CONTRACTIONS.get(word, word)
            words += [word] if kept else full.split()
    return words


def _needs_object(tokens: list[tuple[str, str]]) -> bool:
    """Whether "when's a semicolon used" can't be "has used": nothing is named that it used."""
    words = [token for token, kind in tokens if kind == "word"]
    return (
        len(words) in (3, 4)
        and words[-1] in _DONE_TO
        and words[0].lower() in ("when's", "where's", "how's", "why's")
        and sum(map(is_participle, words)) == 1
    )


def is_participle(word: str) -> bool:
    """Whether a word may be a participle or a past tense."""
    if word in PARTICIPLES:
        return True
    return word.islower() and word.endswith(("ed", "en", "wn")) and word not in NO_PARTICIPLES


def _is_pronoun(before: str, after: str) -> bool:
    """Whether "I" is who asks. Iodine, a current and a numeral are called so too."""
    if not after or not after[0].isalpha() or after in _NOT_AFTER_I:
        return False
    return not before or before in _BEFORE_I or before in AUXILIARIES


_DONE_TO = listed("used made located based situated calculated measured produced caused")
_BEFORE_I = QUESTION_WORDS | listed(
    "if that and but , . ? ! : while because before after since until so should something anything "
    "everything whenever wherever things or than as unless though although once way time"
)
_NOT_AFTER_I = listed("is are in of an a the mean means stand stands equal equals as or")


def _cased(token: str, first: bool = True) -> str:
    lower = token.lower()
    plain = token == lower or token == "I" or token.startswith("I'") or caseless(token)
    plain = plain or (first and lower in STARTING and token[1:] == token[1:].lower())
    return lower if plain else EXACT + token


def caseless(token: str) -> bool:
    """Whether a name means the same in small letters, and is written as it usually is.

    GIT is a part of the body, Apis a bull, and Ai may be somebody's name.
    """
    lower = token.lower()
    if lower in ACRONYMS:
        return token in (lower, lower.upper()) or token in CANONICAL
    return lower in NAMES and (token in (lower, lower.capitalize()) or token in CANONICAL)
