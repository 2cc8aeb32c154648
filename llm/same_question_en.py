"""When two English questions ask the same: their normal forms are equal.

A question is brought into a normal form by rewrites that change nothing in its answer. Whatever
no rewrite names is compared as it stands and in its order, so numbers, negation, roles, tense,
names, code, quoted text, scope, format and the wish for a language all have to agree. The rules:

1. *Framing* goes: greetings, "please", "can you tell me", "I was wondering", thanks; "can you" only
   where it can't ask what may be done ("can you list the …", not "can you give a baby honey"), "do
   you know how to" never, "tell me when" and "tell me if" neither (they may be for later). No
   greeting goes from a question about words that doesn't say about which ("hello, how do you say it").
2. *How-to questions* are one: "how do I", "how can I", "how does one", "how to", "what is the way
   to". "How do you" only for what takes hands and in a programming language: whoever answers
   stores conversations too. "How should I", "how do we", "is there a way to", "a way to" and "the
   best way to" are others, and so is each where the verb is no deed ("how do I get cancer").
3. *The auxiliary's place* is free where something asks: "tell me why the sky is blue", or a question
   mark; "why we sleep" alone is a book. Which auxiliary counts; "do" and "does" go where the verb
   shows them ("how it works"). "Not" moves along with it, but only from right behind the subject
   ("find him not guilty"), not past "all" and "only", and not in a question for yes or no.
4. *Contractions* are written out, but 's where it may be "has" ("who's called"), and none where
   letters may be asked for ("how do you spell cannot"). British spelling is American, but not where
   the word itself may be the point ("why colour", "is colour valid in CSS").
5. *Articles* count: "the law", "a law", "law". They may be left out in haste, everywhere, only before
   single things ("how to sort list") and "the" before what there is one of ("capital of France").
6. *Number* counts, in nouns and in is/are, was/were, do/does, has/have, this/these: "what are
   aids" asks for devices. Only these don't, because the answer is one: "what is/are the
   difference(s) between", and is/are before "the symptoms of" and the like.
7. *The s of the third person* is no difference where "does" stands for it. Every other form of a
   verb is.
8. *Capitals* count, except at the start of a sentence and in names that mean nothing else in
   small letters, written as usual (git and Git, not GIT). A capitalised word is compared as it is
   written. Python and Ubuntu are names only beside words such as "install".
9. *Numbers* as words are digits only before a unit or in a sum ("nine inch nails" are a band), and
   where no other number stands beside them. Anything with a digit or a sign is compared exactly.
10. *Spellings* of a word are a closed list; no two words are the same, but units and their signs (km).
11. In a question *about words* (mean, spell, synonym, translate, a language's name, …) 4, 7, 9 and 10
    don't count; 9 and 10 neither in one that may be about letters (string, length, British, …).
12. *Order* counts, but: "difference between A and B" is "between B and A"; "in winter, how …" is
    "how … in winter", where it can belong to nothing else ("in a hat, who saw the man"); "in which
    city is X" is "which city is X in"; the one programming language of a question may stand before
    its noun ("a Python list", but not "a Python compiler") or after it ("a list in Python"); "by
    whom was X painted" is "who painted X", "the author of X" who wrote it.
13. "Explain X" is "what is X" for a thing, not for a figure ("the price of gold"), and "name the X of"
    is "what is the X of", but they aren't each other; "how tall is X" is "what is the height of X",
    of a name how old, deep or big too; "France's capital" is the capital of France.
14. Punctuation counts, except one `.` or `?` right after the last word of a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llm.same_question_en_rewrites import (
    as_question,
    difference_of,
    fronted_to_end,
    head_of,
    is_title,
    reworded,
    stranded,
    unframed,
    within_language,
    without_auxiliary,
)
from llm.same_question_en_tokens import EXACT, sentences_of, spelled, tokens_of
from llm.same_question_en_words import (
    ABOUT_WORDS,
    AUXILIARIES,
    BY_NAME,
    COUNTED,
    DONE,
    ENGLISH,
    FOREIGN,
    IRREGULAR,
    KEEPS_S,
    OF_LANGUAGE,
    RELATIONAL,
    SEVERAL_OF,
)


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
        supported: "do" or "does", which went, so that the verb has no s.
        words: the rest, in order.
        within: the programming language that it is all about.
        pair: A and B of "the difference between A and B", in the order of the alphabet.
        mark: `.`, `?`, or nothing where it doesn't matter; `!` always does ("save!" in Ruby).
        style: how it was asked for, where that may mean a different answer: `explain`, `name`.
        about_words: rule 11 holds.
    """

    head: str
    auxiliary: str
    negated: bool
    supported: str
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
    tokens = tokens_of(text)
    lowered = {token.lower().partition("'")[0] for token, _ in tokens}
    letters = [token for token, kind in tokens if kind == "word"]
    if lowered & FOREIGN or (len(letters) > 2 and not lowered & ENGLISH):
        raise NotReadError("language")
    about_words = bool(lowered & ABOUT_WORDS) or any(kind == "quoted" for _, kind in tokens)
    sentences = [_sentence(*part, about_words) for part in sentences_of(tokens)]
    kept = [sentence for sentence in sentences if sentence is not None]
    if not kept:
        raise NotReadError("empty")
    return tuple(kept)


def same_form(a: tuple[Sentence, ...], b: tuple[Sentence, ...]) -> bool:
    """Whether two normal forms are the same. Symmetric."""
    return len(a) == len(b) and all(map(_same_sentence, a, b))


def _sentence(tokens: list[tuple[str, str]], mark: str, about_words: bool) -> Sentence | None:
    """The sentence's normal form; None where there is nothing but framing."""
    words = spelled(tokens, about_words)
    words, asked = unframed(words, about_words)
    if not words:
        return None
    before_come = words[:2] == ["how", "come"]
    style, words = as_question(fronted_to_end(words))
    words = stranded(words)
    come = before_come and words[0] == "why"
    asked = asked or come
    head, words = head_of(words, asked or mark == "?")
    asks = bool(head) or (bool(words) and words[0] in AUXILIARIES)
    auxiliary, negated, supported = "", False, ""
    if head == "whether":
        head = ""
    if not (asked or mark == "?") and is_title(head, words):
        head = f"{head}_"
    elif asks and not head.startswith("how_") and words:
        auxiliary, negated, words = without_auxiliary(head, words, embedded=asked)
        supported = auxiliary if auxiliary in ("do", "does") else ""
        auxiliary = "" if supported else auxiliary
        head, auxiliary, words = reworded(head, auxiliary, words)
        supported = "" if auxiliary else supported
        if auxiliary in ("is", "are") and words[:1] == ["the"] and words[2:3] == ["of"]:
            auxiliary = "is" if words[1] in SEVERAL_OF else auxiliary
    within, words = ("", words) if about_words else within_language(words)
    done = within and head == "how" and auxiliary == "is" and words[:1] in (["a"], ["an"])
    if done and words[-1] in DONE:
        head, auxiliary, words = "how_to", "", [DONE[words[-1]], *words[:-1]]
    pair: tuple[tuple[Word, ...], ...] = ()
    found = difference_of(head, auxiliary, words)
    if found is not None:
        if head == "how":
            supported = ""
        head, auxiliary = "what", "is"
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
        mark="" if (asks or asked) and mark != "!" else mark,
        style=style,
        about_words=about_words,
    )


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
        return word
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
    if {a.mark, b.mark} == {".", "?"} or (a.mark == "!") != (b.mark == "!"):
        return False
    if a.style and b.style and a.style != b.style:
        return False
    said = {word.text for word in (*a.words, *b.words)}
    pairs = list(zip(a.words, b.words, strict=True))
    if a.supported != b.supported:
        if a.supported and b.supported:
            return False
        # "What drugs cause" and "what do drugs cause"
        subject = a.words[0].text if a.words else ""
        clear = a.head in ("how", "why", "where", "when", "") and not said & {"many", "much"}
        if not clear and subject not in ("this", "that", "it"):
            return False
        if "does" in (a.supported, b.supported):
            bare, ending = (0, 1) if a.supported else (1, 0)
            for place, both in enumerate(pairs):
                # "how does it work" and "how it works": the one verb, and nothing else
                verb = both[ending].several and not both[bare].several
                verb = verb and both[0].text == both[1].text
                if verb and not (both[0].article or both[1].article):
                    del pairs[place]
                    break
            else:
                return False
    if not all(_same_word(one, other) for one, other in pairs):
        return False
    if not _same_articles(a, pairs):
        return False
    return all(
        len(one) == len(other)
        and all(_same_side(x, y, a.within) for x, y in zip(one, other, strict=True))
        for one, other in zip(a.pair, b.pair, strict=True)
    )


def _same_word(one: Word, other: Word) -> bool:
    return one.text == other.text and one.several == other.several


def _same_side(one: Word, other: Word, within: str) -> bool:
    """Whether a side of a difference is the same: "a list" is "list" only in a language."""
    hasty = within and one.text in OF_LANGUAGE and not (one.article and other.article)
    return _same_word(one, other) and (one.article == other.article or bool(hasty))


def _same_articles(a: Sentence, pairs: Sequence[tuple[Word, Word]]) -> bool:
    """Whether where one has an article and the other none it was only left out.

    It is left out in haste, and then everywhere ("how to sort list", "what is capital of France").
    But "a cold" is an illness and "cold" isn't, "a chicken" is a whole one, and who goes to prison
    doesn't visit the prison: so only before things that are always single ones, and "the" before
    what somebody or something has but one of.
    """
    unequal = [place for place, (one, other) in enumerate(pairs) if one.article != other.article]
    if not unequal:
        return True
    if all(any(word.article for word in side) for side in zip(*pairs, strict=True)):
        return False
    texts = [one.text for one, _ in pairs]
    for place in unequal:
        one, other = pairs[place]
        if a.head == "how_to":
            if one.several or one.text not in COUNTED or texts[0] in BY_NAME:
                return False
        elif not (
            place == 0
            and a.head in ("what", "who")
            and a.auxiliary in ("is", "was")
            and {one.article, other.article} == {"the", ""}
            and one.text in RELATIONAL
            and texts[1:2] == ["of"]
        ):
            return False
    return True
