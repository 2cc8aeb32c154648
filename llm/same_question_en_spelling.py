"""Two spellings of an English word, where it is used and can't be what is asked about.

"How many u's are in colour", "does the flag colour work": by itself a spelling counts. It doesn't
in "the colour of the sky" and "how do I organise a party", where a word stands as what it is, nor
beside a noun that it describes ("grey hair"), unless right, British or code is spoken of.
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
            "aluminum/aluminium",
            "gray/grey",
            "tire/tyre",
            "tires/tyres",
            "pajamas/pyjamas",
        ]
    )
}
_ISED = re.compile(r"((?:organ|optim|recogn|summar|minim|maxim|memor|apolog|critic|priorit)i)se")
_OURED = re.compile(r"((?:col|fav|behavi|neighb|flav|hum|harb|od|lab|rum)o)ur(s?)")
# Beside one of these nouns it can only describe it.
_COMPOUNDS = {
    tuple(pair.split())
    for pair in (
        "aluminum foil",
        "aluminum pan",
        "aluminum can",
        "aluminum cans",
        "gray hair",
        "gray hairs",
        "gray matter",
        "flat tire",
        "flat tires",
        "tire pressure",
        "winter tires",
        "car tire",
        "bike tire",
        "greek yogurt",
        "jewelry box",
        "my tire",
        "my tires",
        "my pajamas",
    )
}
_NO_DEEDS = listed("aluminium grey tyre tyres tire tires pyjamas")
_MADE_WITH = listed("yogurt")
_MISTYPED = re.compile(r"diffrence|differance|diference|differnce|diffrance")
# There a spelling may be what is asked about, and in code a name is its letters.
_SPELLING = listed(
    "english british american canadian australian americans canadians australians uk us usa britain "
    "america correct right wrong valid allowed accepted scrabble legal spellings standard use uses "
    "css html python java code function method class variable keyword property tag"
)
_NO_OBJECT = listed(
    "in on at for of with to from by vs versus or and as than if when while without into over under "
    "is are was were do does did can be it this that these those so not"
)
# Nobody sorts a list in a snake; "how do I find a job in java" is of the island.
_LOWER = re.compile(
    r"how (?:to|do i|can i) (?:(?:sort|reverse|iterate over|loop over|concatenate|flatten|parse|append to)"
    r" (?:an? |two )?(?:lists?|arrays?|strings?|dict|dictionary|tuple|json|csv)\b.* in (?=python|java)"
    r"|(?:install|uninstall|restart|update|upgrade|configure) [a-z0-9.-]+ on (?=ubuntu|debian|android))"
    r"(\w+)"
)
_DETERMINERS = listed("the a an my your his her our their")
_UNITS = {
    other: unit
    for unit, others in (("km", "kilometers kilometres"), ("cm", "centimeters centimetres"))
    for other in others.split()
}
_SHORT = {
    ("the", "gross", "domestic", "product", "of"): ("the", "gdp", "of"),
    ("my", "curriculum", "vitae"): ("my", "=CV"),
    ("the", "=World", "=Health", "=Organization"): ("the", "=WHO"),
    ("the", "=World", "=Health", "=Organisation"): ("the", "=WHO"),
    ("the", "=European", "=Union"): ("the", "=EU"),
    ("an", "env", "var"): ("an", "environment", "variable"),
    ("what", "is", "the", "temp", "of"): ("what", "is", "the", "temperature", "of"),
    ("check", "if", "a", "file", "exists"): ("check", "whether", "a", "file", "exists"),
    ("test", "if", "a", "file", "exists"): ("check", "whether", "a", "file", "exists"),
    ("test", "whether", "a", "file", "exists"): ("check", "whether", "a", "file", "exists"),
    ("the", "quickest", "way", "to"): ("the", "fastest", "way", "to"),
    ("the", "=Soviet", "=Union"): ("the", "=USSR"),
    ("the", "=United", "=Nations"): ("the", "=UN"),
}


def one_spelling(words: list[str]) -> list[str]:
    """Words in one spelling each, where nobody can mean their letters."""
    if any(len(word.partition("'")[0].lstrip("=")) == 1 and word not in "ai," for word in words):
        return words  # "how many u's …"
    plain = _SPELLING.isdisjoint(word.lower().lstrip("=") for word in words)
    how = words[:1] == ["how"]
    found: list[str] = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        after = words[place + 1] if place + 1 < len(words) else ""
        thing = before in _DETERMINERS and after in ("of", "against", "for", "")
        deed = before in ("to", "i") and after in _DETERMINERS
        deed = deed and word not in _NO_DEEDS
        one = _one(word)
        object_follows = after.isalpha() and after.islower() and after not in _NO_OBJECT
        if (plain and one != word) or one in _MADE_WITH:
            thing = thing or (before, one) in _COMPOUNDS or (one, _one(after)) in _COMPOUNDS
            thing = thing or (one in _MADE_WITH and plain and before in ("for", "with", "from"))
            first = words[1:place] in (["to"], ["do", "i"], ["can", "i"])
            deed = deed or (word not in _NO_DEEDS and how and first and object_follows)
        if plain and after == "between" and _MISTYPED.fullmatch(word):
            one, thing = "difference", True
        found.append(one if thing or deed else word)
        if before == "many":
            found[-1] = _UNITS.get(word, word)
    if found[:1] == ["how"] and found[-2:-1] and (tech := _LOWER.fullmatch(" ".join(found))):
        found[-1] = f"={tech[1].capitalize()}"
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
