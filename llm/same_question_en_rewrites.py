"""Rewrites of an English question that change nothing in its answer; the rules stand in same_question_en."""

from __future__ import annotations

from llm.same_question_en_tokens import EXACT
from llm.same_question_en_words import (
    AGENTS,
    ASKING,
    AUXILIARIES,
    BEFALLS,
    BY_HAND,
    CASELESS,
    CLAUSE_STARTS,
    CLOSINGS,
    CONTRACTIONS,
    DEGREES,
    DESCRIBING,
    EXPLAINED,
    FIGURES,
    FIRST_PERSON,
    GIVEN,
    HOW_TO,
    IN_COMPUTING,
    ITS_OWN,
    KEEPS_S,
    LANGUAGES,
    MAKERS,
    MEASURES,
    MONEY_AND_UNITS,
    NUMBER_WORDS,
    OF_LANGUAGE,
    ONE_OF_MANY,
    OPENINGS,
    PERSONAL,
    POINTING,
    QUANTIFIERS,
    QUESTION_WORDS,
    RELATIONAL,
    SEASONS,
    SOUGHT,
    SUPERLATIVE_WAYS,
    SUPERLATIVES,
    WAY_TO_PLACES,
    WISHED,
    WISHES,
    WRITTEN_WORKS,
    listed,
)

_SIGNS = (",", ":", ";", "-", "–", "—")


def unframed(words: list[str], about_words: bool) -> tuple[list[str], bool]:
    """Without framing; and whether what went asked for something."""
    asked = False
    # "Hello, how do you say it in French?": there the greeting is what is asked about.
    dangling = about_words and _dangles(words)
    while True:
        before = words
        while words and (words[0] in _SIGNS or (words[0] == "but" and len(words) > 3)):
            words = words[1:]
        for opening in OPENINGS:
            if not dangling and _begins(words, opening) and _ends_there(words, opening):
                words = words[len(opening) :]
        for asking in ASKING:
            rest = words[len(asking) :]
            if _begins(words, asking) and rest and _asks(rest) and not _commands(asking, rest):
                words = rest[1:] if rest[0] in _SIGNS else rest
                words, asked = ["whether" if words[0] == "if" else words[0], *words[1:]], True
                break
        for wish in WISHES:
            rest = words[len(wish) :]
            if _begins(words, wish) and rest and rest[0] in WISHED and _is_wish(wish, rest):
                words, asked = rest[:-2] if rest[-2:] == ["for", "me"] else rest, True
                break
        for closing in CLOSINGS:
            apart = words[-len(closing) - 1 : -len(closing)]
            bare = closing == ("please",) and not about_words
            if (
                not dangling
                and words[-len(closing) :] == list(closing)
                and (
                    bare or not apart or (apart[0] in _SIGNS and not (about_words and ":" in apart))
                )
            ):
                words = words[: -len(closing)]
        while words and words[-1] in _SIGNS:
            words = words[:-1]
        if words == before:
            return words, asked


_PLACING = listed("of in on for from with to by between")
_POINTERS = frozenset(("it", "this", "that", "these", "those"))
_SAYING = listed("say spell pronounce write translate mean call define")


def _dangles(words: list[str]) -> bool:
    """Whether a question about words doesn't say about which."""
    if _POINTERS & set(words):
        return True
    return any(
        word in _SAYING and (not after or after == "in" or after in _SIGNS)
        for word, after in zip(words, [*words[1:], ""], strict=True)
        if word != "mean"
    )


def _commands(asking: tuple[str, ...], rest: list[str]) -> bool:
    """Whether something is to be done later, or shown: "tell me when it is ready"."""
    if "tell" in asking and rest[0] in ("when", "if"):
        return True
    if asking[:2] == ("do", "you") and rest[:2] == ["how", "to"]:  # "do you know how to swim?"
        return True
    return "show" in asking and rest[:2] not in (["how", "to"], ["how", "do"], ["how", "can"])


def _is_wish(wish: tuple[str, ...], rest: list[str]) -> bool:
    """Whether "can you …" wishes for it. "Can you give a baby honey?" asks what may be done."""
    if not set(wish) & {"can", "could", "would", "will"} or set(wish) & {
        "please",
        "kindly",
        "kind",
    }:
        return True
    verb, after = rest[0], rest[1:]
    if after[:1] == ["me"]:
        return True
    if wish[0] not in ("can", "could") or "as" in after:
        return False
    if verb == "explain":
        return True
    if verb in ("list", "name"):
        noun = after[: next((at for at, each in enumerate(after) if each in _PLACING), None)]
        several = noun[-1:] != [] and noun[-1].endswith("s") and noun[-1] not in KEEPS_S
        return after[:1] == ["the"] and len(noun) > 1 and several
    if verb in ("recommend", "suggest"):
        return after[:1] in (["a"], ["an"], ["some"])
    if verb == "write":
        return (
            after[:1] in (["a"], ["an"])
            and bool(set(after[1:3]) & WRITTEN_WORKS)
            and ("about" in after)
        )
    return False


def _begins(words: list[str], phrase: tuple[str, ...]) -> bool:
    start = tuple(words[: len(phrase)])
    return start == phrase or start == tuple(
        part for word in phrase for part in CONTRACTIONS.get(word, word).split()
    )


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


def fronted_to_end(words: list[str]) -> list[str]:
    """ "in winter, how …" to "how … in winter".

    Only where it can belong to nothing else there: "in a hat, who saw the man" isn't "who saw the
    man in a hat", and "in winter, how did he describe life" has no life in winter.
    """
    if not words or words[0] not in _FRONTED or "," not in words[:8]:
        return words
    comma = words.index(",")
    first, rest = words[1:comma], words[comma + 1 :]
    asks = bool(rest) and (rest[0] in QUESTION_WORDS or rest[0] in AUXILIARIES)
    clause = words[0] in ("if", "when") and len(first) > 2
    told = DESCRIBING | _CLAUSAL if clause else _ATTACHING
    where = words[0] == "in" and bool(first) and first[0] in LANGUAGES and len(first) <= 2
    if where and asks and "," not in rest:
        return [*rest, *words[:comma]]
    nested = set(first) & (CLAUSE_STARTS - {"and", "or", "not"})
    if not asks or "," in rest or nested or len(rest) < 3 or set(rest[1:]) & told:
        return words
    if any(word.endswith("ing") for word in rest):
        return words
    if rest[-2] in _PRONOUNS and rest[-3] in AUXILIARIES:  # "how soon can I drive": no noun there
        return [*rest, *words[:comma]]
    if words[0] == "in":
        when = set(first) <= SEASONS or (len(first) == 1 and first[0][:1].isdigit())
        if not when:
            return words
    elif words[0] not in ("if", "when") or len(first) < 3:  # "when cold" may be said of anybody
        return words
    return [*rest, *words[:comma]]


_FRONTED = listed("in on if when after before during without")
_PRONOUNS = listed("i you one we they he she it")
_CLAUSAL = listed("if when while because although after before that who which to than")
_ATTACHING = (
    DESCRIBING
    | _CLAUSAL
    | listed("about of on in for with from at by into onto over under without during")
)


def stranded(words: list[str]) -> list[str]:
    """ "in which city is X" to "which city is X in"."""
    if words[0] == "what" and len(words) > 3:
        return [_which(words), *words[1:]]
    if words[:3] == ["which", "is", "the"] and len(words) > 4:
        return ["what", *words[1:]] if words[3] in SUPERLATIVES else words
    if (
        words[0] not in ("in", "at", "from", "by", "on")
        or words[1:2] not in (["which"], ["what"])
        or len(words) < 5
        or set(words[2:]) & (_ATTACHING | QUESTION_WORDS | {","})
    ):
        return words
    if words[0] == "in" and words[2] == "year":
        return ["which", *words[2:]]
    return [_which(words[1:]), *words[2:], words[0]]


def _which(words: list[str]) -> str:
    return "which" if words[1] in ONE_OF_MANY else words[0]


def head_of(words: list[str], asks: bool) -> tuple[str, list[str]]:
    """The question word, or `how_to`, and the rest.

    Args:
        asks: it has a question mark, or framing went that asked; "why we sleep" alone is a title.
    """
    for opening in HOW_TO:
        if tuple(words[: len(opening)]) == opening and len(words) > len(opening):
            if opening[-1] == "can" and not asks:
                continue
            rest = words[len(opening) :]
            who = next((word for word in opening if word in PERSONAL), "")
            if rest[0].startswith(EXACT) or rest[0] in ("a", "an", "the"):
                return words[0], words[1:]
            if opening[0] == "what" and (len(rest) == 1 or rest[0] in WAY_TO_PLACES):
                return words[0], words[1:]
            return _way(opening, who, rest), rest
    for opening in SUPERLATIVE_WAYS:
        if tuple(words[: len(opening)]) == opening:
            return f"{opening[-3]}_way", words[len(opening) :]
    if words[0] in QUESTION_WORDS:
        return words[0], words[1:]
    if words[0] == "whether" and len(words) > 3:
        return "whether", words[1:]
    return "", words


def _way(opening: tuple[str, ...], who: str, rest: list[str]) -> str:
    """`how_to`, where it asks for nothing but how a deed is done."""
    own = "_".join(word for word in opening if word not in PERSONAL) + f"_{who}"
    persons = set(rest) & PERSONAL
    if who == "you":
        by_hand = rest[0] in BY_HAND and len(rest) > 1 and rest[1] not in ("up", "down", "without")
        places = [at for at, word in enumerate(rest) if at and word in IN_COMPUTING]
        coded = len(places) == 1 and rest[places[0] - 1] == "in" and rest[0] not in ITS_OWN
        generic = opening[1] == "do" and (by_hand or coded) and rest[0] not in BEFALLS
        return "how_to" if generic and not persons else own
    if who == "one":
        return own if persons or rest[0] in BEFALLS else "how_to"
    if who == "i" and (rest[0] in BEFALLS or persons - FIRST_PERSON):
        sought = tuple(rest[:2]) in SOUGHT or (rest[0] == "get" and "out" in rest)
        sought = sought and not persons and opening[1] == "do"
        deed = rest[0] not in BEFALLS
        return "how_to" if sought else "how_to_i" if deed else own
    return "how_to"


def is_title(head: str, words: list[str]) -> bool:
    """Whether words after a question word tell rather than ask: "where the wild things are"."""
    if head not in ("how", "why", "where", "when") or not words:
        return False
    return words[0] not in AUXILIARIES | {"not"} and not (head == "how" and words[0] in DEGREES)


def as_question(words: list[str]) -> tuple[str, list[str]]:
    """ "explain X", "give me the X" and "X was painted by whom" as the question that each is."""
    if words[0] == "explain" and len(words) > 1 and _explains_what(words[1:]):
        return "explain", ["what", "is", *words[1:]]
    for given in GIVEN:
        rest = words[len(given) :]
        if _begins(words, given) and rest[:1] == ["the"] and "," not in rest:
            if rest[1:3] in (["difference", "between"], ["differences", "between"]):
                return given[0], ["what", "is", *rest]
            if "of" not in rest[2:]:
                continue
            noun = rest[rest.index("of") - 1]
            several = noun.endswith("s") and not noun.endswith("ss") and noun not in KEEPS_S
            return given[0], ["what", "are" if several else "is", *rest]
    if words[:2] == ["how", "come"] and len(words) > 3:
        return "", ["why", *words[2:]]
    if words[:2] in (["difference", "between"], ["differences", "between"]):
        return "", ["what", "is", "the", *words]
    wished = words[0] in ("write", "tell", "recommend", "suggest") and words[1:2] == ["me"]
    if wished and words[2:3] in (["a"], ["an"], ["some"]):
        return "", [words[0], *words[2:]]
    bare = words[1:] if words[0] == "the" else words
    if len(bare) > 2 and bare[0] in FIGURES and bare[1] == "of" and _is_named(bare[2:]):
        return "", ["what", "is", "the", *bare]
    if words[:2] == ["by", "whom"]:
        return "", ["who", *words[2:], "by"]
    if words[-2:] == ["by", "whom"]:
        at = next((at for at, word in enumerate(words) if word in ("was", "were")), 0)
        if at:
            return "", ["who", words[at], *words[:at], *words[at + 1 : -1]]
    return "", words


def _explains_what(rest: list[str]) -> bool:
    """Whether "explain X" wants what "what is X" does.

    "Explain the price of gold" asks why, "what is the price of gold" how much; "explain 5 + 5"
    wants the way.
    """
    if set(rest) & POINTING or any(word[:1].isdigit() or word in "+-*/=" for word in rest):
        return False
    if rest[:2] in (["the", "difference"], ["the", "differences"]) or rest[0] == "difference":
        return not set(rest) & ((CLAUSE_STARTS - {"and"}) | {","})
    if set(rest) & (CLAUSE_STARTS | {",", "today", "tomorrow", "yesterday", "now", "current"}):
        return False
    if len(rest) > 3 and rest[-2] == "in" and rest[-1] in LANGUAGES:
        rest = rest[:-2]
    if rest[0] == "the":
        named = len(rest) > 2 and rest[-1] in EXPLAINED
        return named or (rest[1] in EXPLAINED and rest[2:3] == ["of"])
    bare = rest[1:] if rest[0] in ("a", "an") else rest
    several = bare[-1:] and bare[-1].endswith("s") and not bare[-1].endswith(("ss", "sis", "cs"))
    return 0 < len(bare) <= 2 and not several and not set(bare) & _ATTACHING


def without_auxiliary(head: str, words: list[str], embedded: bool) -> tuple[str, bool, list[str]]:
    """Take the first auxiliary out of its place, and a "not" that belongs to it.

    "What dogs can eat" asks of all that "what can dogs eat" does only where it is embedded ("tell
    me what …"); by itself it asks which dogs.
    """
    anywhere = (
        embedded
        or head not in ("what", "which", "who", "whose", "how")
        or (head == "how" and words[:1] not in (["many"], ["much"]))
    )
    if head == "how" and words[:2] == ["much", "is"]:
        return "is", False, [words[0], *words[2:]]
    if not anywhere and (not words or words[0] not in AUXILIARIES):
        return "", False, words
    for place, word in enumerate(words):
        if word in CLAUSE_STARTS:
            break
        if word in AUXILIARIES:
            rest = [*words[:place], *words[place + 1 :]]
            auxiliary = word
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
                each == "not"
                and not after.endswith("ing")
                and after not in _NOT_BEFORE
                and _is_subject(rest[:at])
            ):
                negated = True
                rest = [*rest[:at], *rest[at + 1 :]]
                break
            if each in CLAUSE_STARTS:
                break
    return auxiliary, negated, rest


# "It is safe not to eat" isn't "it isn't safe to eat".
_NOT_BEFORE = listed("to a an the because if until for in on at even just only all so too")
_BEFORE_A_NOUN = listed("a an the my your his her its our their this that these those")


def _is_subject(words: list[str]) -> bool:
    """Whether there is nothing but the subject: "why did juries find not guilty" has a verb too."""
    return len(words) < 2 or (len(words) == 2 and words[0] in _BEFORE_A_NOUN)


def reworded(head: str, auxiliary: str, words: list[str]) -> tuple[str, str, list[str]]:
    """The same question in one wording: passive and active, "how tall" and "the height of"."""
    by = words[-2] if len(words) > 2 and words[-1] == "by" else ""
    if head == "who" and auxiliary in ("was", "were") and by in AGENTS:
        return head, "", [AGENTS[by], *words[:-2]]
    makes = len(words) > 3 and words[0] == "the" and words[1] in MAKERS and words[2] == "of"
    if head == "who" and auxiliary in ("is", "was") and makes and not set(words) & CLAUSE_STARTS:
        return head, "", [MAKERS[words[1]], *words[3:]]
    if head == "how" and auxiliary in ("is", "are") and len(words) > 1:
        if words[0] in MEASURES and not set(words) & _COMPARING:
            named = _is_named(words[1:])
            river = named and words[1] == "the"  # "how long is Titanic" asks for hours
            if words[0] in ("tall", "heavy") or (river if words[0] == "long" else named):
                return "what", auxiliary, ["the", MEASURES[words[0]], "of", *words[1:]]
        if words[0] == "much" and words[1].isdigit() and _is_reckoned(words[2:]):
            return "what", "is", words[1:]
    apart = words[-1:] == ["different"] and words.count("and") == 1
    if head == "how" and auxiliary == "are" and apart:
        return "what", "is", ["the", "difference", "between", *words[:-1]]
    people = head == "how" and not auxiliary and words[:4] == ["many", "people", "live", "in"]
    if people and _is_named(words[4:]):
        return "what", "is", ["the", "population", "of", *words[4:]]
    means = len(words) > 1 and words[-1] in ("mean", "means")
    if head == "what" and not auxiliary and means:
        # an abbreviation; "what does life mean" isn't "what is the meaning of life"
        name, *number = (word.removeprefix(EXACT) for word in words[:-1])
        if not (name.isupper() or name in CASELESS) or not all(map(str.isdecimal, number)):
            return head, auxiliary, words
        return "what", "is", ["the", "meaning", "of", *words[:-1]]
    if head in ("what", "who") and auxiliary in ("is", "are", "was", "were") and "'s" in words:
        at = words.index("'s")
        owner, owned = words[:at], words[at + 1 :]
        simple = 0 < len(owner) <= 3 and 0 < len(owned) <= 3 and "of" not in owner
        simple = simple and owned[-1] in RELATIONAL
        if simple and not set(words) & (CLAUSE_STARTS | AUXILIARIES | QUANTIFIERS):
            return reworded(head, auxiliary, ["the", *owned, "of", *owner])
    return head, auxiliary, words


_COMPARING = listed("than enough too it until since")


def _is_named(words: list[str]) -> bool:
    """Whether it is a name, "the" before it or not, or one of the few things like one."""
    bare = words[1:] if words[:1] == ["the"] else words
    if bare in (["universe"], ["earth"], ["sun"], ["moon"]):
        return True
    return bool(bare) and all(word.startswith(EXACT) or word in CASELESS for word in bare)


def _is_reckoned(words: list[str]) -> bool:
    """Whether a sum or a conversion follows the number: "10 Downing Street" has a price too."""
    if words[:1] in (["times"], ["plus"], ["minus"], ["divided"], ["percent"]):
        return True
    return len(words) == 3 and words[1] == "in" and {words[0], words[2]} <= MONEY_AND_UNITS


def within_language(words: list[str]) -> tuple[str, list[str]]:
    """Take out the one programming language: "in Python", or "Python" before a noun."""
    places = [place for place, word in enumerate(words) if word in LANGUAGES]
    if len(places) != 1 or set(words) & _DIRECTIONS:
        return "", words
    if places[0] and words[places[0] - 1] in _CAUSING:  # "make Python loop"
        return "", words
    (place,) = places
    language = words[place]
    end = place + 1
    if end < len(words) and words[end][0].isdigit():
        language, end = f"{language} {words[end]}", end + 1
    start = place
    if place and words[place - 1] == "in":
        start = place - 1
    elif end != place + 1 or end >= len(words) or words[end] not in OF_LANGUAGE:
        return "", words
    return language, [*words[:start], *words[end:]]


_CAUSING = listed("make let help have get watch see hear")
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
    if (
        words[: at - 1] not in ([], ["the"], ["the", "main"])
        or head != "what"
        or auxiliary not in ("is", "are")
    ):
        return None
    return ["difference", "between", *words[1 : at - 1]], sides


def _is_side(side: list[str]) -> bool:
    bare = [word for word in side if word not in ("a", "an", "the")]
    counted = any(word.lstrip(EXACT + "-")[:1].isdigit() or word in NUMBER_WORDS for word in bare)
    return 0 < len(bare) <= 2 and not set(bare) & _NOT_IN_SIDE and not counted


_NOT_IN_SIDE = CLAUSE_STARTS | frozenset(("in", "of", "for", "on", "with", "from", ",", "between"))
