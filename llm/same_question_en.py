"""When two English questions ask the same: their normal forms are equal.

Whatever no rewrite names is compared as it stands and in its order: spelling, articles, number,
tense, numerals, "not", voice, what stands in front and what behind. The rewrites:

1. *Framing* goes: greetings, "please", "can you tell me", "I was wondering", thanks. "May I ask" alone
   doesn't (it asks what may be asked), nor "do you know how to", "do you know where you …", "tell me
   when" (it may be for later). A sentence that is a greeting goes only from beside a single question;
   thanks go from behind a command such as "explain the offside rule" too, but not "explain the joke".
2. Nothing at all goes or changes, but the first word's capital and the mark at the end, where a
   question is *about words or has a text* to be worked on: mean, spell, translate, write, a
   language's name, quotation marks, a colon after anything but framing. But for closed shapes that
   have their own words with them: "tell me what X means", "can you translate "X" into Y".
3. "How do I" and "how can I" are "how to", but for what befalls somebody ("how do I get cancer"),
   with anybody else in it, or where one word follows ("how do I sing?").
4. *The auxiliary* stands behind the subject after framing: "tell me why the sky is blue". It is the
   same only where it can't belong to a part of the subject ("where the money lost was"); can, will
   and may, which are nouns too, only behind a pronoun. "Why the sky is blue" alone is a title.
   "Do" goes there too, and "does" where the last word has the s ("how it works"; "which muscles the
   plank trains", with one noun on either side of "the").
5. *Contractions* are written out, but 's where it may be "has" ("who's called"). "Don't" is "do not"
   only behind who does it ("I do not know"): "do not vaccinated people …" asks of others.
6. *Capitals* count, except at the start of a sentence and in names that mean nothing else in
   small letters, written as usual.
7. *Requests* of a closed shape are one: "can you explain X" and "explain X", "give me the capital of X"
   and "what is the capital of X", "name the stages of X" and "what are the stages of X"
   (`same_question_en_requests`).
8. *Units and signs* are one within a whole question of a closed shape: "what is 3 tbsp in ml", "what is
   20% of 150" (`same_question_en_units`).
9. *Spelling* is free where a word is used and can't be meant itself (`same_question_en_spelling`).
10. Punctuation counts, except one `.` or `?` right after the last word or quotation of a question.
"""

from __future__ import annotations

from dataclasses import dataclass

from llm.same_question_en_frames import as_question, is_framing, unframed
from llm.same_question_en_requests import (
    has_own_object,
    in_one_form,
    is_list_asked_for,
    verbatim_in_one_form,
)
from llm.same_question_en_spelling import one_spelling
from llm.same_question_en_tokens import EXACT, is_participle, sentences_of, spelled, tokens_of
from llm.same_question_en_units import one_measure
from llm.same_question_en_words import (
    ABOUT_WORDS,
    ASKING,
    AUXILIARIES,
    BEFALLS,
    CLAUSE_STARTS,
    CLOSINGS,
    CONTRACTIONS,
    ENGLISH,
    FOREIGN,
    OPENINGS,
    PERSONAL,
    POINTERS,
    QUANTIFIERS,
    QUESTION_WORDS,
    listed,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence in normal form.

    Args:
        head: the question word, `whether`, `how_to`, or nothing.
        auxiliary: the one that was taken out of its place.
        embedded: it stood behind framing and has no auxiliary: "do" may have gone.
        words: the rest, in order.
        mark: `.`, `?`, or nothing where it doesn't matter; `!` always does ("save!" in Ruby).
    """

    head: str
    auxiliary: str
    embedded: bool
    words: tuple[str, ...]
    mark: str


_Part = tuple[list[tuple[str, str]], str]


class NotReadError(Exception):
    """This rule doesn't read the text. The message is the reason's fixed name."""


def read(text: str) -> tuple[Sentence, ...]:
    """The normal form of a text on one line.

    Raises:
        NotReadError: it isn't English.
    """
    tokens = tokens_of(text)
    lowered = {token.lower().partition("'")[0] for token, _ in tokens}
    letters = [token for token, kind in tokens if kind == "word"]
    if lowered & FOREIGN or (len(letters) > 2 and not lowered & ENGLISH):
        raise NotReadError("language")
    parts = sentences_of(tokens)
    quoted = any(kind == "quoted" for _, kind in tokens)
    about = lowered & ABOUT_WORDS
    if about == {"name"} and is_list_asked_for([token.lower() for token in letters]):
        about = set()
    if about or quoted or _has_text(tokens):
        named = [part for part in parts if not is_framing(spelled(part[0], False))]
        if len(named) == 1 and _names_its_words(named[0][0]):
            parts = named
        return tuple(_verbatim(*part, quoted, alone=len(parts) == 1) for part in parts)
    asked = [part for part in parts if not is_framing(spelled(part[0], False))]
    if not asked:
        raise NotReadError("empty")
    # "Hello. I am late." may be the text that somebody is to have.
    alone = len(asked) == 1 and not (lowered & POINTERS)
    forms = tuple(_sentence(*part) for part in (asked if alone else parts))
    if len(asked) < len(parts) and not (alone and (forms[0].head or _is_told(asked[0], parts))):
        return tuple(_verbatim(*part, quoted, alone=False) for part in parts)
    return forms


def same_form(a: tuple[Sentence, ...], b: tuple[Sentence, ...]) -> bool:
    """Whether two normal forms are the same. Symmetric."""
    return len(a) == len(b) and all(map(_same_sentence, a, b))


def _has_text(tokens: list[tuple[str, str]]) -> bool:
    """Whether a colon stands after anything but framing, so that a text may follow."""
    found: list[str] = []
    for token, _ in tokens:
        if token in (",", ".", "!", "?"):
            found = []
        elif token == ":":
            if tuple(found) not in OPENINGS and tuple(found) not in ASKING:
                return True
        else:
            found += CONTRACTIONS.get(token.lower(), token.lower()).split()
    return False


def _names_its_words(tokens: list[tuple[str, str]]) -> bool:
    return has_own_object(verbatim_in_one_form(spelled(tokens, to_the_letter=True))[0])


def _is_told(asked: _Part, parts: list[_Part]) -> bool:
    """Whether a command is followed by thanks that nobody can want to be told about."""
    words, _ = unframed(spelled(asked[0], False))
    return (
        len(words) > 1
        and words[0] in _TOLD
        and PERSONAL.isdisjoint(words)
        and words[1:2] + words[3:] != ["the"]  # "explain the joke"
        and parts[0] == asked
        and all(tuple(spelled(part[0], False)) in _THANKS for part in parts[1:])
        and _MAY_BE_THANKS.isdisjoint(words)
    )


def _verbatim(tokens: list[tuple[str, str]], mark: str, quoted: bool, *, alone: bool) -> Sentence:
    words = spelled(tokens, to_the_letter=True)
    if quoted and alone:  # what is asked about stands in the quotation
        words, _ = unframed(words)
    words, formed = verbatim_in_one_form(words) if alone else (words, False)
    if formed and words[0] not in QUESTION_WORDS and mark == "?":
        mark = "."
    free = alone and mark != "!" and words[0] in QUESTION_WORDS | AUXILIARIES
    if free and quoted and words[:3] == ["how", "do", "I"]:
        words = ["how", "to", *words[3:]]
    return Sentence("", "verbatim", False, tuple(words), "" if free or mark == "." else mark)


def _sentence(tokens: list[tuple[str, str]], mark: str) -> Sentence:
    words, asked = unframed(_negations(spelled(tokens, False)))
    words, formed = in_one_form(one_measure(as_question(one_spelling(words))))
    if formed and mark == "?":
        mark = "."
    head, auxiliary = "", ""
    if words and words[0] in QUESTION_WORDS:
        head, words = words[0], words[1:]
    elif words and words[0] in AUXILIARIES:
        head = "whether"
    elif asked and words[:1] == ["whether"]:
        head, words = "whether", words[1:]
    if head == "how" and words[:1] == ["to"] and len(words) > 1:
        head, words = "how_to", words[1:]
    elif head:
        degree = head == "how" and words[0:1] and words[0] not in _NO_DEGREES
        if degree and words[1:2] and words[1] in (_STARTS if asked else AUXILIARIES):
            head, words = f"how {words[0]}", words[1:]  # "how far the moon is"
        place = _auxiliary(head, words, asked)
        if place is not None:
            auxiliary, words = words[place], [*words[:place], *words[place + 1 :]]
        elif asked and head != "whether" and set(words[1:]) & AUXILIARIES:
            head += "?"  # where it belongs isn't sure: "tell me what dogs can eat"
        elif head in _FREE and not asked and words[:1] not in (["many"], ["much"]):
            head += "_"  # "why we sleep" tells
        if head == "how" and auxiliary in ("do", "can") and _is_deed(words):
            head, auxiliary, words = "how_to", "", words[1:]
    return Sentence(
        head=head,
        auxiliary=auxiliary,
        embedded=asked and not auxiliary,
        words=tuple(words),
        mark="" if mark == "." or ((head or asked) and mark != "!") else mark,
    )


_THANKS = frozenset(CLOSINGS) - {("cheers",)}
_TOLD = listed("explain describe list outline calculate compute solve convert recommend")
_MAY_BE_THANKS = listed(
    "rude polite kind nice sorry thanks "
    "sarcasm irony humor humour joke jokes attitude insult nuance connotation "
    "origin origins expression expressions custom customs etiquette gesture use usage history "
    "following above below next previous politeness formality sentiment context"
)
_FIRST = listed("my me mine myself")
_FREE = ("how", "why", "where", "when", "whether")
_AMBIGUOUS = listed("can will may might must do did does")
_SUBJECTS = listed("i you he she it we they one")
_PLACES = listed("alone there here now then inside outside home upstairs abroad")
_STARTS = _SUBJECTS | listed("the a an my your his her its our their")
_NO_DEGREES = _STARTS | AUXILIARIES | {"many", "much"}
_PLAIN_NOT = listed("do does did is are was were have has had should will would")


def _negations(words: list[str]) -> list[str]:
    """ "Not" as "n't" behind an auxiliary and who does it, at the start of a sentence."""
    place = 2 if words[0] in _SUBJECTS else 3 if words[0] in ("my", "the") else 0
    if not place or words[place : place + 1] != ["not"] or words[place - 1] not in _PLAIN_NOT:
        return words
    if words[-1] == "not" or words[place + 1].endswith("ing"):  # "it is not eating that kills"
        return words
    return [*words[:place], "n't", *words[place + 1 :]]


def _auxiliary(head: str, words: list[str], asked: bool) -> int | None:
    """Where the auxiliary stands that belongs to the question; None where none surely does."""
    if words[:1] and words[0] in AUXILIARIES:
        return 0 if not asked or words[0] not in _AMBIGUOUS else None
    counting = head in ("which", "whose") or (head == "how" and words[:1] in (["many"], ["much"]))
    if not asked or counting or not _is_manner(head, words):
        return None
    for place, word in enumerate(words):
        if word in CLAUSE_STARTS:
            return None
        if word in AUXILIARIES:
            before, after = words[place - 1], words[place + 1 : place + 2]
            attached = is_participle(before) or before.endswith(("ing", "ly"))
            attached = attached or before in QUANTIFIERS | _PLACES or after in (["not"], ["n't"])
            noun = word in _AMBIGUOUS and before not in _SUBJECTS
            return None if attached or noun else place
    return None


def _is_manner(head: str, words: list[str]) -> bool:
    """Whether what follows "how" can't be an adjective of either: "how old dogs are trained"."""
    return head != "how" or not _STARTS.isdisjoint(words[:2]) or len(words) < 3


def _is_deed(words: list[str]) -> bool:
    """Whether "how do I" goes on with what somebody wants to be told how to do."""
    if words[:1] != ["i"] or len(words) < 3:
        return False
    verb, rest = words[1], set(words[2:])
    if verb == "get" and {"out", "of"} <= rest:
        return not rest & (PERSONAL - _FIRST)
    return not (
        verb.startswith(EXACT)
        or verb in BEFALLS | QUANTIFIERS | {"not", "n't", "a", "an", "the", "to"}
        or verb.endswith("ly")
        or rest & (PERSONAL - _FIRST)
    )


def _same_sentence(a: Sentence, b: Sentence) -> bool:
    if a.head != b.head or a.mark != b.mark:
        return False
    if a.auxiliary == b.auxiliary:
        return a.words == b.words or _is_object(a, b) or _is_object(b, a)
    direct, other = (a, b) if a.auxiliary else (b, a)
    if not other.embedded or other.auxiliary or not a.head.startswith(_FREE):
        return False
    if not _is_manner(a.head, list(direct.words)) or any(map(is_participle, direct.words)):
        return False  # "why they put it there" may be of long ago
    if direct.auxiliary == "do":
        return direct.words == other.words
    if direct.auxiliary != "does" or not direct.words:
        return False
    return (
        direct.words[:-1] == other.words[:-1]
        and _third_person(direct.words[-1]) == (other.words[-1])
    )


def _is_object(direct: Sentence, other: Sentence) -> bool:
    """Whether "tell me which muscles the plank trains" asks for what it does train.

    With one noun on either side of "the", nothing else can have the verb.
    """
    if direct.embedded or not other.embedded or direct.head not in ("which", "what"):
        return False
    if len(direct.words) != 5 or direct.words[1] != "does" or len(other.words) != 4:
        return False
    noun, _, the, who, verb = direct.words
    return (
        the in ("the", "a", "an")
        and other.words == (noun, the, who, _third_person(verb))
        and not any(map(is_participle, direct.words))
        and QUANTIFIERS.isdisjoint(direct.words)
        and AUXILIARIES.isdisjoint(other.words)
    )


def _third_person(verb: str) -> str:
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou"):
        return verb[:-1] + "ies"
    return verb + "s"
