"""An English question as words: quoted text, code and numbers apart, capitals as they count."""

from __future__ import annotations

import re

from llm.same_question_en_words import (
    ABOUT_LETTERS,
    ACRONYMS,
    AFTER_NAMES,
    AFTER_PYTHON,
    ARITHMETIC,
    AUXILIARIES,
    BEFORE_PYTHON,
    CANONICAL,
    CASELESS,
    CONTRACTIONS,
    IN_CODE,
    IN_PROGRAMS,
    IZED,
    KEEPS_S,
    MADE,
    NAMES,
    NO_PARTICIPLES,
    OF_LANGUAGE,
    ONES,
    OURED,
    PARTICIPLES,
    PHRASES,
    QUESTION_WORDS,
    SHORT_NAMES,
    SPELLING_COUNTS,
    STARTING,
    SYNONYMS,
    TENS,
    TO_THE_SIGN,
    UNITS,
    listed,
)

EXACT = "="
"""Before a token that is compared as it is written."""


_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*'?")


_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|`+[^`]*`+|(?<![\w\'])\'[^\']+\'(?!\w)')


_BARE_WORD = re.compile(r"[^\W\d_]+[+#]*")


_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")


_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)(km|cm|mm|kg|mg|ml|%)")


_ABBREVIATIONS = listed(
    "vs. mr. mrs. ms. dr. st. e.g. i.e. u.s. u.k. u.n. etc. approx. p.m. a.m. pct."
)


def tokens_of(text: str) -> list[tuple[str, str]]:
    """Words, numbers, marks, and what is compared exactly: quoted text and code."""
    literal = not TO_THE_SIGN.isdisjoint(_BARE_WORD.findall(text.lower()))
    found: list[tuple[str, str]] = []
    at = 0
    for quoted in _QUOTED.finditer(text):
        found += _plain(text[at : quoted.start()], literal)
        found.append((quoted[0], "quoted"))
        at = quoted.end()
    return found + _plain(text[at:], literal)


def _plain(text: str, literal: bool) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for chunk in text.split():
        found += _chunk(chunk, literal)
    return found


def _chunk(chunk: str, literal: bool) -> list[tuple[str, str]]:
    if chunk.lower() in _ABBREVIATIONS and not literal:
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
        # 1,000 is a tuple in Python, and "how do I write 1,000?" asks about the comma.
        middle = [(bare if literal else bare.replace(",", ""), "number")]
    elif not literal and (split := _WITH_UNIT.fullmatch(bare)) and "!" not in marks:
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
    lowered = {word.lower() for word, _ in tokens}
    about_letters = bool(about_words or lowered & ABOUT_LETTERS)
    typed = [word.lower() for word, _ in tokens]
    about_letters = about_letters or _to_be_written(typed)
    how = "how" in typed[:8]
    exact = lowered & (SPELLING_COUNTS if how else SPELLING_COUNTS | IN_CODE)
    spelled_out = about_words or bool(lowered & (ABOUT_LETTERS - IN_PROGRAMS))
    spelled_out = spelled_out or _to_be_written(typed)
    done = {word for word, kind in tokens if kind == "word" and _is_participle(word)}
    has_done = bool(done) and not (done <= MADE and tokens[0][0].lower() in ("how's", "where's"))
    words: list[str] = []
    for place, (token, kind) in enumerate(tokens):
        lower = token.lower()
        before = tokens[place - 1][0].lower() if place else ""
        after = tokens[place + 1][0].lower() if place + 1 < len(tokens) else ""
        if kind == "number" or kind == "mark":
            words.append(token)
        elif kind != "word":
            words.append(EXACT + token)
        elif lower in ("am", "pm") and place and tokens[place - 1][1] in ("number", "code"):
            words.append(f"o'clock_{lower}")
        elif (
            before in ("a", "an")
            and lower in CASELESS
            and after not in OF_LANGUAGE | AFTER_PYTHON | AFTER_NAMES
        ):
            # A python is a snake, but a python list isn't.
            words.append(token if token.islower() else EXACT + token)
        elif lower in ("python", "ubuntu") and not _is_the_language(before, after):
            words.append(token if token.islower() else EXACT + token)
        elif token == "I" and not _is_pronoun(before, after):
            words.append(EXACT + token)
        else:
            word = _cased(token, first=not before or before == ":")
            if word in CONTRACTIONS:
                kept = spelled_out and not _begins_question(place, word, after)
                kept = kept or (has_done and word.endswith("s") and not _begins_noun(word, after))
                word = word if kept else CONTRACTIONS[word]
            words += word.split()
    if about_words:
        return words
    if not about_letters:
        words = [SHORT_NAMES.get(word, word) for word in words]
        if not exact and not _is_used(words):
            replaced = [_synonym(word) for word in words]
            # "is it color or colour": where both stand, their difference is the question
            if len(set(replaced)) == len(set(words)):
                words = _numbers(replaced)
    return _phrased(words)


def _is_participle(word: str) -> bool:
    """Whether a word may be one, so that a 's before it may be "has"."""
    if word in PARTICIPLES:
        return True
    return word.islower() and word.endswith(("ed", "en", "wn")) and word not in NO_PARTICIPLES


def _begins_noun(word: str, after: str) -> bool:
    """ "When's a semicolon used?" has no "has": what would it have used?"""
    return word[:-2] in ("when", "how", "why") and after in ("a", "an", "the")


def _begins_question(place: int, word: str, after: str) -> bool:
    """Whether "what's" begins a question about words, and isn't itself what is asked about."""
    if place:
        return False
    asks = word.removesuffix("s").removesuffix("'") in QUESTION_WORDS
    return (asks and after in ("the", "a", "an", "your", "another")) or word in ("i'm", "i've")


def _is_the_language(before: str, after: str) -> bool:
    near = before in BEFORE_PYTHON or after in OF_LANGUAGE or after in AFTER_PYTHON
    return near or after[:1].isdigit()


def _is_pronoun(before: str, after: str) -> bool:
    """Whether "I" is who asks. Iodine, a current and a numeral are called so too."""
    if not after or not after[0].isalpha() or after in _NOT_AFTER_I:
        return False
    return not before or before in _BEFORE_I or before in AUXILIARIES


_BEFORE_I = QUESTION_WORDS | listed(
    "if that and but , . ? ! : while because before after since until so should something anything "
    "everything whenever wherever things or than as unless though although once way time"
)
_NOT_AFTER_I = listed("is are in of an a the mean means stand stands equal equals as or")


def _to_be_written(words: list[str]) -> bool:
    """Whether "how do I write color" is asked, not "how do I write a loop"."""
    return any(
        word in ("write", "writes", "written", "writing", "type")
        and after not in ("a", "an", "the")
        for word, after in zip(words, [*words[1:], ""], strict=True)
    )


def _is_used(words: list[str]) -> bool:
    """Whether the word itself may be what is asked about: "should I use organise", "why colour"."""
    changed = [place for place, word in enumerate(words) if _synonym(word) != word]
    return any(place == 0 or words[place - 1].startswith("us") for place in changed) or (
        bool(changed) and len(words) < 4
    )


def _synonym(word: str) -> str:
    if word in SYNONYMS:
        return SYNONYMS[word]
    if (ised := _ISED.fullmatch(word)) and ised[1] in IZED:
        return f"{ised[1]}iz{ised[2]}"
    if (oured := _OURED.fullmatch(word)) and oured[1] in OURED:
        return f"{oured[1]}or{oured[2] or ''}"
    if word.endswith("s") and word[:-1] in SYNONYMS and word not in KEEPS_S:
        return SYNONYMS[word[:-1]] + "s"
    return word


_ISED = re.compile(r"(\w+)is(e|es|ed|ing|er|ers|ation|ations)")
_OURED = re.compile(r"(\w+)our(s|ed|ing|ite|ites|hood|hoods|ful|less|y|al|able)?")


def _cased(token: str, first: bool) -> str:
    if token.lower().endswith("'s") and token.lower() not in CONTRACTIONS:
        return f"{_cased(token[:-2], first)} 's"
    lower = token.lower()
    plain = token in (lower, "I") or (first and token == "A")
    plain = plain or token.startswith(("I'", "I’")) or caseless(token)
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


def _numbers(words: list[str]) -> list[str]:
    """Number words as digits, where they stand alone and before a unit.

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
        after = words[place + 1] if place + 1 < len(words) else ""
        before = words[place - 1] if place else ""
        counts = after in UNITS or before in ARITHMETIC
        counts = counts or (before == "by" and words[place - 2 : place - 1] == ["divided"])
        spelled_out = spelled_out and counts
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
