"""Rewrites of an English question that change nothing in its answer; the rules stand in same_question_en."""

from __future__ import annotations

from llm.same_question_en_tokens import EXACT
from llm.same_question_en_words import (
    AGENTS,
    ASKING,
    AUXILIARIES,
    BEFALLS,
    CASELESS,
    CLAUSE_STARTS,
    CLOSINGS,
    CONTRACTIONS,
    GIVEN,
    HOW_TO,
    LANGUAGES,
    MEASURES,
    NUMBER_WORDS,
    OF_LANGUAGE,
    OF_YOU,
    OPENINGS,
    PERSONAL,
    POINTING,
    QUANTIFIERS,
    QUESTION_WORDS,
    RELATIONAL,
    SUPERLATIVE_WAYS,
    WISHED,
    WISHES,
    listed,
)

_SIGNS = (",", ":", ";", "-", "–", "—")


# Not "with", "for" and the like: "with a saw, who saw the man" isn't "who saw the man with a saw".
_FRONTED = listed("in on during without before after if when while")


def unframed(words: list[str], about_words: bool) -> tuple[list[str], bool]:
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


def fronted_to_end(words: list[str]) -> list[str]:
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


def head_of(words: list[str]) -> tuple[str, list[str]]:
    for opening in HOW_TO:
        if tuple(words[: len(opening)]) == opening and len(words) > len(opening):
            rest = words[len(opening) :]
            who = next((word for word in opening if word in PERSONAL), "")
            if rest[0].startswith(EXACT) or rest[0] in ("a", "an", "the"):
                return words[0], words[1:]
            if who and set(rest) & PERSONAL:
                return f"how_to_{who}", rest
            sought = rest[0] in ("get", "become") and opening == ("how", "do", "i")
            if who and rest[0] in BEFALLS and not sought:
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


def as_question(words: list[str]) -> tuple[str, list[str]]:
    """ "explain the X", "give me the X" and "X was painted by whom" as the question that each is."""
    if words[0] == "explain" and len(words) > 1:
        # "explain 5 + 5" wants the way, "what is 5 + 5" the result
        plain = not set(words) & ((CLAUSE_STARTS - {"and"}) | {","} | POINTING)
        plain = plain and not any(word[:1].isdigit() or word in "+-*/=" for word in words)
        if plain and (words[1] != "the" or len(words) > 3):
            return "explain", ["what", "is", *words[1:]]
    for given in GIVEN:
        rest = words[len(given) :]
        if _begins(words, given) and rest[:1] == ["the"] and "of" in rest and "," not in rest:
            return given[0], ["what", "is", *rest]
    if words[:2] == ["by", "whom"]:
        return "", ["who", *words[2:], "by"]
    if words[-2:] == ["by", "whom"]:
        return "", ["who", *words[:-1]]
    return "", words


def without_auxiliary(head: str, words: list[str], embedded: bool) -> tuple[str, bool, list[str]]:
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
    if head in ("", "whether"):
        # "Can you not smoke here?" isn't "can't you smoke here?"
        if not embedded and place == 0 and rest[:1] == ["n't"] and not set(words) & QUANTIFIERS:
            negated, rest = True, rest[1:]
    elif not set(words) & QUANTIFIERS:
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


def reworded(head: str, auxiliary: str, words: list[str]) -> tuple[str, str, list[str]]:
    """The same question in one wording: passive and active, "how tall" and "the height of"."""
    by = words[-2] if len(words) > 2 and words[-1] == "by" else ""
    if head == "who" and auxiliary == "was" and by in AGENTS:
        return head, "", [AGENTS[by], *words[:-2]]
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
        # an abbreviation; "what does life mean" isn't "what is the meaning of life"
        name, *number = (word.removeprefix(EXACT) for word in words[:-1])
        if not (name.isupper() or name in CASELESS) or not all(map(str.isdecimal, number)):
            return head, auxiliary, words
        return "what", "be", ["the", "meaning", "of", *words[:-1]]
    if head in ("what", "who") and auxiliary in ("be", "was") and "'s" in words:
        at = words.index("'s")
        owner, owned = words[:at], words[at + 1 :]
        simple = 0 < len(owner) <= 3 and 0 < len(owned) <= 3 and "of" not in owner
        simple = simple and owned[-1] in RELATIONAL
        if simple and not set(words) & (CLAUSE_STARTS | set(AUXILIARIES) | QUANTIFIERS):
            return head, auxiliary, ["the", *owned, "of", *owner]
    return head, auxiliary, words


def within_language(words: list[str], how_to: bool) -> tuple[str, list[str]]:
    """Take out the one programming language: "in Python", or "Python" before a noun."""
    places = [place for place, word in enumerate(words) if word in LANGUAGES]
    if len(places) != 1 or set(words) & _DIRECTIONS:
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


# "Convert a Python list to Fortran" isn't "convert a list to Fortran in Python".
_DIRECTIONS = listed(
    "from to into onto out with without using via through by for as than between against and or "
    "inside over across"
)


def difference_of(
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
    # The time difference between two places has a direction, and so has one in percent.
    if words[: at - 1] not in ([], ["the"], ["the", "main"]) or head != "what" or auxiliary != "be":
        return None
    return ["difference", "between", *words[1 : at - 1]], sides


def _is_side(side: list[str]) -> bool:
    bare = [word for word in side if word not in ("a", "an", "the")]
    counted = any(word.lstrip(EXACT + "-")[:1].isdigit() or word in NUMBER_WORDS for word in bare)
    return 0 < len(bare) <= 2 and not set(bare) & _NOT_IN_SIDE and not counted


_NOT_IN_SIDE = CLAUSE_STARTS | frozenset(("in", "of", "for", "on", "with", "from", ",", "between"))
