"""Two spellings of an English word, where it is used and can't be what is asked about.

"How many u's are in colour", "does the flag colour work": by itself a spelling counts. It doesn't
in "the colour of the sky" and "how do I organise a party", where a word stands as what it is.
"""

from __future__ import annotations

import re

from llm.same_question_en_words import listed

_SPELLINGS = {
    other: word
    for word, other in (
        pair.split("/")
        for pair in [
            "center/centre",
            "theater/theatre",
            "catalog/catalogue",
            "fiber/fibre",
            "mold/mould",
            "plow/plough",
            "yogurt/yoghurt",
            "mustache/moustache",
            "airplane/aeroplane",
            "defense/defence",
            "offense/offence",
            "license/licence",
            "practice/practise",
            "analyze/analyse",
            "traveler/traveller",
            "jewelry/jewellery",
        ]
    )
}
_ISED = re.compile(r"((?:organ|optim|recogn|summar|minim|maxim|memor|apolog|critic|priorit)i)se")
_OURED = re.compile(r"((?:col|fav|behavi|neighb|flav|hum|harb|od|lab|rum)o)ur(s?)")
_DETERMINERS = listed("the a an my your his her our their")
_UNITS = {
    other: unit
    for unit, others in (("km", "kilometers kilometres"), ("cm", "centimeters centimetres"))
    for other in others.split()
}
_SHORT = {
    ("the", "gross", "domestic", "product", "of"): ("the", "gdp", "of"),
    ("my", "curriculum", "vitae"): ("my", "=CV"),
    ("the", "=Soviet", "=Union"): ("the", "=USSR"),
    ("the", "=United", "=Nations"): ("the", "=UN"),
}


def one_spelling(words: list[str]) -> list[str]:
    """Words in one spelling each, where nobody can mean their letters."""
    if any(len(word.partition("'")[0].lstrip("=")) == 1 and word not in "ai," for word in words):
        return words  # "how many u's …"
    found: list[str] = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        after = words[place + 1] if place + 1 < len(words) else ""
        thing = before in _DETERMINERS and after in ("of", "against", "for", "")
        deed = before in ("to", "i") and after in _DETERMINERS
        found.append(_one(word) if thing or deed else word)
        if before == "many":
            found[-1] = _UNITS.get(word, word)
    for long, short in _SHORT.items():
        for place in range(len(found) - len(long) + 1):
            if tuple(found[place : place + len(long)]) == long:
                found[place : place + len(long)] = short
    return found


def _one(word: str) -> str:
    if ised := _ISED.fullmatch(word):
        return ised[1] + "ze"
    if oured := _OURED.fullmatch(word):
        return f"{oured[1]}r{oured[2]}"
    return _SPELLINGS.get(word, word)
