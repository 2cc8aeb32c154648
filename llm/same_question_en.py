"""When two English questions ask the same: their normal forms are equal.

A question is brought into a normal form by rewrites that change nothing in its answer. Whatever
no rewrite names is compared as it stands and in its order, so numbers, negation, roles, tense,
names, code, quoted text, scope, format and the wish for a language all have to agree. The rules:

1. *Framing* goes: greetings, "please", "can you tell me", "I was wondering", thanks; "can you" and
   the like only before a verb of asking ("can you list …", not "can you swim").
2. *How-to questions* are one: "how do I/you/we/one", "how can I", "how to", "what is the way to",
   "is there a way to". "How should I" is another, and so is "the best way to".
3. *The auxiliary's place* is free: "why the sky is blue" is "why is the sky blue". Which
   auxiliary counts (present and past, can and should); "do" goes. "Not" moves along with it, but
   not past words such as "all" and "only", with which its place has a meaning.
4. *Contractions* are written out. British spelling is American.
5. *Articles*: "the" and "a" are different. None may stand for either where a question in haste has
   none at all ("how to sort list", "what is capital of France"), and before names.
6. *One or several*: "a cat" is "cats" in a question with a question word, but "the cat" isn't "the
   cats", and nothing is exchanged beside words such as "best", "name" or "how many".
7. *The s of the third person* is no difference. Every other form of a verb is.
8. *Capitals* count, except at the start of a sentence and in names that mean nothing else in
   small letters. A capitalised word is compared as it is written.
9. *Numbers* as words are digits. Anything with a digit or a sign in it is compared exactly.
10. *Synonyms* are a closed list.
11. In a question *about words* (mean, spell, synonym, translate, …) 6, 7, 9 and 10 don't count.
12. *Order* counts, but: "difference between A and B" is "between B and A"; "in winter, how …" is
    "how … in winter"; the one programming language of a question may stand before its noun
    ("a Python list", but not "a Python compiler") or after it ("a list in Python"); "by whom was X painted" is "who painted X".
13. "Explain X" is "what is X", and so is "name the X" "what is the X", but they aren't each other;
    "how tall is X" is "what is the height of X", "France's capital" the capital of France.
14. Punctuation counts, except the mark at the end of what is a question anyway.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from llm.same_question_en_words import (
    ABOUT_WORDS,
    AGENTS,
    ASKING,
    AUXILIARIES,
    CASELESS,
    CLAUSE_STARTS,
    CLOSINGS,
    CONTRACTIONS,
    DONE,
    ENGLISH,
    FOREIGN,
    GIVEN,
    HOW_TO,
    IRREGULAR,
    KEEPS_S,
    LANGUAGES,
    MADE,
    MEASURES,
    OF_LANGUAGE,
    OF_YOU,
    ONES,
    OPENINGS,
    PERSONAL,
    PHRASES,
    POINTING,
    QUANTIFIERS,
    QUESTION_WORDS,
    RELATIONAL,
    SELECTIVE,
    SUPERLATIVE_WAYS,
    SYNONYMS,
    TENS,
    WISHED,
    WISHES,
    listed,
)

EXACT = "="
"""Before a token that is compared as it is written."""

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*'?")
_QUOTED = re.compile(r'"[^"]*"|`+[^`]*`+|(?<![\w\'])\'[^\']+\'(?!\w)')
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)(km|cm|mm|kg|mg|ml|%)")
_ABBREVIATIONS = listed("vs. mr. mrs. ms. dr. st. e.g. i.e. etc. approx. p.m. a.m. pct.")
_SIGNS = (",", ":", ";", "-", "–", "—")
_FRONTED = listed("in on at for with without during under using between after before if when while")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of the normal form.

    Args:
        text: what is compared; it begins with `EXACT` where nothing was done to it.
        article: "a" (also "an"), "the", or nothing.
        several: it has a plural's s, or the s of the third person.
    """

    text: str
    article: str = ""
    several: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence in normal form.

    Args:
        head: the question word, `how_to`, or nothing.
        auxiliary: the one that was taken out of its place.
        negated: a "not" was taken out of its place.
        supported: "do" or "does" went, so that the verb has no s.
        words: the rest, in order.
        within: the programming language that it is all about.
        pair: A and B of "the difference between A and B", in the order of the alphabet.
        mark: `.`, `?`, or nothing where it doesn't matter.
        style: how it was asked for, where that may mean a different answer: `explain`, `name`.
        about_words: rule 11 holds.
    """

    head: str
    auxiliary: str
    negated: bool
    supported: bool
    words: tuple[Word, ...]
    within: str
    pair: tuple[tuple[Word, ...], ...]
    mark: str
    style: str
    about_words: bool


class NotReadError(Exception):
    """This rule doesn't read the text. The message is the reason's fixed name."""


def read(text: str) -> tuple[Sentence, ...]:
    """The normal form of a text on one line.

    Raises:
        NotReadError: it isn't English.
    """
    tokens = _tokens(text)
    lowered = {token.lower().partition("'")[0] for token, _ in tokens}
    letters = [token for token, kind in tokens if kind == "word"]
    if lowered & FOREIGN or (len(letters) > 2 and not lowered & ENGLISH):
        raise NotReadError("language")
    about_words = bool(lowered & ABOUT_WORDS) or any(kind == "quoted" for _, kind in tokens)
    sentences = [_sentence(*part, about_words) for part in _split(tokens)]
    kept = [sentence for sentence in sentences if sentence is not None]
    if not kept:
        raise NotReadError("empty")
    return tuple(kept)


def same_form(a: tuple[Sentence, ...], b: tuple[Sentence, ...]) -> bool:
    """Whether two normal forms are the same. Symmetric."""
    return len(a) == len(b) and all(map(_same_sentence, a, b))


# Text to tokens ------------------------------------------------------------------------------


def _tokens(text: str) -> list[tuple[str, str]]:
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
        return [(chunk, "mark")]
    else:  # code, or something like it: only a sentence's own mark is no part of it
        end = re.search(r"[,;:]$|\.$|\?$", chunk)
        kept = chunk[: end.start()] if end else chunk
        return [(kept, "code"), *([(end[0], "mark")] if end else [])]
    return [
        *([("(", "mark")] if opened else []),
        *middle,
        *([(")", "mark")] if closed else []),
        *([(marks, "mark")] if marks else []),
    ]


def _split(tokens: list[tuple[str, str]]) -> list[tuple[list[tuple[str, str]], str]]:
    """Sentences, each with its closing mark: `?` if there is one in it, else `.`, or nothing."""
    parts: list[tuple[list[tuple[str, str]], str]] = [([], "")]
    for token, kind in tokens:
        if kind == "mark" and set(token) <= set(".?!"):
            mark = "?" if "?" in token else "." if set(token) <= set(".!") else ""
            if parts[-1][0]:
                parts[-1] = (parts[-1][0], mark)
                parts.append(([], ""))
        else:
            parts[-1][0].append((token, kind))
    return [part for part in parts if part[0]]


# Tokens to a normal form ---------------------------------------------------------------------


def _sentence(tokens: list[tuple[str, str]], mark: str, about_words: bool) -> Sentence | None:
    """The sentence's normal form; None where there is nothing but framing."""
    words = _spelled(tokens, about_words)
    words, asked = _unframed(words, about_words)
    if not words:
        return None
    style, words = _as_question(_fronted_to_end(words))
    head, words = _head(words)
    asks = bool(head) or (bool(words) and words[0] in AUXILIARIES)
    auxiliary, negated, supported = "", False, False
    if head == "whether":
        head = ""
    if asks and not head.startswith("how_to"):
        auxiliary, negated, words = _auxiliary(head, words, embedded=asked)
        supported = auxiliary == "do"
        auxiliary = "" if supported else auxiliary
        head, auxiliary, words = _reworded(head, auxiliary, words)
    within, words = ("", words) if about_words else _within(words, head == "how_to")
    if within and head == "how" and auxiliary == "be" and words[-1:] and words[-1] in DONE:
        head, auxiliary, words = "how_to", "", [DONE[words[-1]], *words[:-1]]
    pair: tuple[tuple[Word, ...], ...] = ()
    found = _difference(head, auxiliary, words)
    if found is not None:
        if head == "how":
            head, auxiliary = "what", "be"
        words, sides = found
        pair = tuple(sorted((_worded(side, about_words) for side in sides), key=_texts))
    return Sentence(
        head=head,
        auxiliary=auxiliary,
        negated=negated,
        supported=supported,
        words=_worded(words, about_words),
        within=within,
        pair=pair,
        mark="" if asks or asked else mark,
        style=style,
        about_words=about_words,
    )


def _spelled(tokens: list[tuple[str, str]], about_words: bool) -> list[str]:
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
            words += _cased(token, first=place == 0 or tokens[place - 1][0] == ":").split()
    if about_words:
        return words
    return _phrased(_numbers([_synonym(word) for word in words]))


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
    plain = plain or (first and token[1:] == token[1:].lower() and len(token) > 1)
    if not plain:
        return EXACT + token
    return CONTRACTIONS.get(lower, lower)


def _numbers(words: list[str]) -> list[str]:
    """Number words as digits; twenty-one is one number."""
    found: list[str] = []
    for word in words:
        tens, _, ones = word.partition("-")
        if tens in TENS and ones in ONES and 0 < ONES[ones] < 10:
            found.append(str(TENS[tens] + ONES[ones]))
        elif word in TENS:
            found.append(str(TENS[word]))
        elif word in ONES:
            if found and found[-1] in {str(ten) for ten in TENS.values()} and 0 < ONES[word] < 10:
                found[-1] = str(int(found[-1]) + ONES[word])
            else:
                found.append(str(ONES[word]))
        else:
            found.append(word)
    return found


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


def _unframed(words: list[str], about_words: bool) -> tuple[list[str], bool]:
    """Without framing; and whether what went asked for something."""
    asked = False
    while True:
        before = words
        while words and (words[0] in _SIGNS or (words[0] == "but" and len(words) > 3)):
            words = words[1:]
        for opening in OPENINGS:
            if _begins(words, opening) and _ends_there(words, len(opening)):
                words = words[len(opening) :]
        for asking in ASKING:
            rest = words[len(asking) :]
            if _begins(words, asking) and rest and _asks(rest):
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
            bare = closing == ("please",) and not about_words
            if words[-len(closing) :] == list(closing) and (
                bare or not apart or apart[0] in _SIGNS
            ):
                words = words[: -len(closing)]
        while words and words[-1] in _SIGNS:
            words = words[:-1]
        if words == before:
            return words, asked


def _begins(words: list[str], phrase: tuple[str, ...]) -> bool:
    return tuple(words[: len(phrase)]) == tuple(
        part for word in phrase for part in CONTRACTIONS.get(word, word).split()
    )


def _ends_there(words: list[str], length: int) -> bool:
    """Whether an opening is one: nothing, a mark or a question follows it."""
    if len(words) == length or words[0] in ("please", "kindly"):
        return True
    after = words[length]
    return after in _SIGNS or _asks(words[length:]) or after == "please"


def _asks(words: list[str]) -> bool:
    """Whether words go on as a question."""
    if words[0] in (",", ":"):
        words = words[1:]
    return bool(words) and (words[0] in QUESTION_WORDS or words[0] in ("if", "whether"))


def _fronted_to_end(words: list[str]) -> list[str]:
    """ "in winter, how …" to "how … in winter"."""
    if not words or words[0] not in _FRONTED or "," not in words[:8]:
        return words
    comma = words.index(",")
    rest = words[comma + 1 :]
    asks = bool(rest) and (rest[0] in QUESTION_WORDS or rest[0] in AUXILIARIES)
    nested = set(words[1:comma]) & (CLAUSE_STARTS - {"and", "or", "not"})
    if not asks or "," in rest or nested or set(rest[1:]) & _SUBORDINATE:
        return words
    return [*rest, *words[:comma]]


_SUBORDINATE = listed("if when while because although after before that who which")


def _head(words: list[str]) -> tuple[str, list[str]]:
    for opening in HOW_TO:
        if tuple(words[: len(opening)]) == opening and len(words) > len(opening):
            rest = words[len(opening) :]
            who = next((word for word in opening if word in PERSONAL), "")
            if rest[0].startswith(EXACT) or rest[0] in ("a", "an", "the"):
                return words[0], words[1:]
            if who and set(rest) & PERSONAL:
                return f"how_to_{who}", rest
            if who == "you" and (len(rest) == 1 or rest[0] in OF_YOU):
                return "how_to_you", rest
            return "how_to", rest
    for opening in SUPERLATIVE_WAYS:
        if tuple(words[: len(opening)]) == opening:
            return f"{opening[-3]}_way", words[len(opening) :]
    if words[0] in QUESTION_WORDS:
        return words[0], words[1:]
    if words[0] == "whether" and len(words) > 3:
        return "whether", words[1:]
    return "", words


def _as_question(words: list[str]) -> tuple[str, list[str]]:
    """ "explain the X", "give me the X" and "X was painted by whom" as the question that each is."""
    if words[0] == "explain" and len(words) > 1:
        # "explain 5 + 5" wants the way, "what is 5 + 5" the result
        plain = not set(words) & ((CLAUSE_STARTS - {"and"}) | {","} | POINTING)
        plain = plain and not any(word[:1].isdigit() or word in "+-*/=" for word in words)
        if plain and (words[1] != "the" or len(words) > 3):
            return "explain", ["what", "is", *words[1:]]
    # "define a function in Python" may want one written
    other = CLAUSE_STARTS | LANGUAGES | {",", "in", "as", "function", "variable"}
    if words[0] == "define" and len(words) > 1 and not set(words) & other:
        return "", ["what", "is", "the", "meaning", "of", *words[1:]]
    for given in GIVEN:
        rest = words[len(given) :]
        if _begins(words, given) and rest[:1] == ["the"] and "of" in rest and "," not in rest:
            return given[0], ["what", "is", *rest]
    if words[:2] == ["by", "whom"]:
        return "", ["who", *words[2:], "by"]
    if words[-2:] == ["by", "whom"]:
        return "", ["who", *words[:-1]]
    return "", words


def _auxiliary(head: str, words: list[str], embedded: bool) -> tuple[str, bool, list[str]]:
    """Take the first auxiliary out of its place, and a "not" that belongs to it.

    "What dogs can eat" asks of all that "what can dogs eat" does only where it is embedded ("tell
    me what …"); by itself it asks which dogs.
    """
    anywhere = (
        embedded
        or head not in ("what", "which", "whose", "how")
        or (head == "how" and words[:1] not in (["many"], ["much"]))
    )
    if not anywhere and (not words or words[0] not in AUXILIARIES):
        return "", False, words
    for place, word in enumerate(words):
        if word in CLAUSE_STARTS:
            break
        if word in AUXILIARIES:
            rest = [*words[:place], *words[place + 1 :]]
            auxiliary = AUXILIARIES[word]
            break
    else:
        return "", False, words
    if word not in AUXILIARIES:
        return "", False, words
    negated = False
    if not set(words) & QUANTIFIERS:
        for at, each in enumerate(rest):
            after = rest[at + 1] if at + 1 < len(rest) else ""
            if each == "n't" or (
                each == "not" and not after.endswith("ing") and after not in _NOT_BEFORE
            ):
                negated = True
                rest = [*rest[:at], *rest[at + 1 :]]
                break
            if each in CLAUSE_STARTS:
                break
    return auxiliary, negated, rest


# "It is safe not to eat" isn't "it isn't safe to eat".
_NOT_BEFORE = listed("to a an the because if until for in on at even just only all so too")


def _reworded(head: str, auxiliary: str, words: list[str]) -> tuple[str, str, list[str]]:
    """The same question in one wording: passive and active, "how tall" and "the height of"."""
    by = words[-2] if len(words) > 2 and words[-1] == "by" else ""
    if head == "who" and auxiliary == "was" and by in AGENTS:
        return head, "", [AGENTS[by], *words[:-2]]
    if head == "how" and auxiliary == "be" and len(words) > 1 and words[-1] in MADE:
        return head, "", ["people", MADE[words[-1]], *words[:-1]]
    if head == "how" and auxiliary == "be" and len(words) > 1:
        if words[0] in MEASURES and not set(words) & {
            "than",
            "enough",
            "too",
            "it",
            "until",
            "since",
        }:
            return "what", auxiliary, ["the", MEASURES[words[0]], "of", *words[1:]]
        if words[0] == "much" and words[1].isdigit():
            return "what", auxiliary, words[1:]
    if head == "how" and not auxiliary and words[:4] == ["many", "people", "live", "in"]:
        return "what", "be", ["the", "population", "of", *words[4:]]
    means = len(words) > 1 and words[-1] in ("mean", "means")
    if head == "what" and not auxiliary and means:
        if set(words) & (PERSONAL | CLAUSE_STARTS | {","}):
            return head, auxiliary, words
        return "what", "be", ["the", "meaning", "of", *words[:-1]]
    if head == "what" and auxiliary == "be" and words[:3] == ["the", "definition", "of"]:
        return head, auxiliary, ["the", "meaning", "of", *words[3:]]
    if head in ("what", "who") and auxiliary in ("be", "was") and "'s" in words:
        at = words.index("'s")
        owner, owned = words[:at], words[at + 1 :]
        simple = 0 < len(owner) <= 3 and 0 < len(owned) <= 3 and "of" not in owner
        simple = simple and owned[-1] in RELATIONAL
        if simple and not set(words) & (CLAUSE_STARTS | set(AUXILIARIES) | QUANTIFIERS):
            return head, auxiliary, ["the", *owned, "of", *owner]
    return head, auxiliary, words


def _within(words: list[str], how_to: bool) -> tuple[str, list[str]]:
    """Take out the one programming language: "in Python", or "Python" before a noun."""
    places = [place for place, word in enumerate(words) if word in LANGUAGES]
    if len(places) != 1:
        return "", words
    (place,) = places
    language = words[place]
    end = place + 1
    if end < len(words) and words[end][0].isdigit():
        language, end = f"{language} {words[end]}", end + 1
    start = place
    if place and (words[place - 1] == "in" or (how_to and words[place - 1] in ("with", "using"))):
        start = place - 1
    elif end != place + 1 or end >= len(words) or words[end] not in OF_LANGUAGE:
        return "", words
    return language, [*words[:start], *words[end:]]


def _difference(
    head: str, auxiliary: str, words: list[str]
) -> tuple[list[str], list[list[str]]] | None:
    """The two sides of "difference between A and B", where each is a word or two."""
    if head == "how" and "differ" in words and "from" in words:
        at = words.index("differ")
        if words[at + 1] == "from" and auxiliary == "":
            sides = [words[:at], words[at + 2 :]]
            if all(_is_side(side) for side in sides):
                return ["difference", "between"], sides
        return None
    if "between" not in words:
        return None
    at = words.index("between")
    if at == 0 or words[at - 1] not in ("difference", "differences"):
        return None
    rest = words[at + 1 :]
    if rest.count("and") != 1:
        return None
    middle = rest.index("and")
    sides = [rest[:middle], rest[middle + 1 :]]
    if not all(_is_side(side) for side in sides):
        return None
    before = ["difference" if word == "differences" else word for word in words[:at]]
    if before in (["the", "difference"], ["difference"]) and head == "what" and auxiliary == "be":
        before = ["difference"]
    return [*before, "between"], sides


def _is_side(side: list[str]) -> bool:
    bare = [word for word in side if word not in ("a", "an", "the")]
    return 0 < len(bare) <= 2 and not set(bare) & _NOT_IN_SIDE


_NOT_IN_SIDE = CLAUSE_STARTS | frozenset(("in", "of", "for", "on", "with", "from", ",", "between"))


def _worded(words: list[str], about_words: bool) -> tuple[Word, ...]:
    """Articles to the word that they stand before, endings off."""
    found: list[Word] = []
    article = ""
    for place, word in enumerate(words):
        after = words[place + 1] if place + 1 < len(words) else ""
        if word in ("a", "an", "the") and after and not about_words:
            article = "the" if word == "the" else "a"
            continue
        if word == "n't":
            found.append(Word("not"))
        elif about_words or word.startswith(EXACT):
            found.append(Word(word, article))
        else:
            stem = _stem(word)
            found.append(Word(stem, article, several=stem != word))
        article = ""
    return tuple(found)


def _stem(word: str) -> str:
    """Without the s of a plural or a third person."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word in AUXILIARIES:
        return {
            "am": "be",
            "is": "be",
            "are": "be",
            "were": "was",
            "does": "do",
            "has": "have",
        }.get(word, word)
    if (
        len(word) < 4
        or word in KEEPS_S
        or not word.endswith("s")
        or word.endswith(("ss", "us", "is"))
    ):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes", "zzes")):
        return word[:-2]
    return word[:-1]


def _texts(words: tuple[Word, ...]) -> tuple[str, ...]:
    return tuple(word.text for word in words)


# Two normal forms ----------------------------------------------------------------------------


def _same_sentence(a: Sentence, b: Sentence) -> bool:
    if (a.head, a.auxiliary, a.negated, a.within, len(a.words), len(a.pair)) != (
        b.head,
        b.auxiliary,
        b.negated,
        b.within,
        len(b.words),
        len(b.pair),
    ):
        return False
    if {a.mark, b.mark} == {".", "?"} or (a.style and b.style and a.style != b.style):
        return False
    said = {word.text for word in (*a.words, *b.words)}
    loose = bool(a.head) and not said & SELECTIVE and a.head != "which"
    pairs = list(zip(a.words, b.words, strict=True))
    if a.supported != b.supported:
        bare, ending = (0, 1) if a.supported else (1, 0)
        for place, both in enumerate(pairs):
            # "how does it work" and "how it works": the one verb, and nothing else
            verb = both[ending].several and not both[bare].several
            if verb and both[0].text == both[1].text and not (both[0].article or both[1].article):
                del pairs[place]
                break
    if not all(_same_word(one, other, loose, bool(a.within)) for one, other in pairs):
        return False
    if not _same_articles(a, pairs):
        return False
    return all(
        len(one) == len(other)
        and all(_same_word(x, y, True, True) for x, y in zip(one, other, strict=True))
        for one, other in zip(a.pair, b.pair, strict=True)
    )


def _same_word(one: Word, other: Word, loose: bool, bare: bool) -> bool:
    if one.text != other.text:
        return False
    articles = {one.article, other.article}
    if one.several != other.several:
        single = other if one.several else one
        return loose and "the" not in articles and (single.article == "a" or bare)
    return articles != {"a", "the"} and (len(articles) == 1 or one.text not in _ARTICLE_COUNTS)


def _same_articles(a: Sentence, pairs: Sequence[tuple[Word, Word]]) -> bool:
    """Whether where one has an article and the other none it was only left out.

    It is left out in haste ("how to sort list", "capital of France"), and then everywhere; else
    "a cold" is an illness and "cold" isn't.
    """
    unequal = [
        (one, other)
        for one, other in pairs
        if one.article != other.article and one.several == other.several
    ]
    if not unequal:
        return True
    hasty = any(not any(word.article for word in side) for side in zip(*pairs, strict=True))
    linked = any(one.text in ("of", "between") for one, _ in pairs)
    return (hasty and (a.head.startswith("how_to") or linked)) or all(
        one.text.startswith(EXACT) for one, _ in unequal
    )


# "few" and "a few" are different, and so are Python and a python.
_ARTICLE_COUNTS = listed("few little bit lot number most couple while python")
