"""Units and sums in an English question, where a number can be nothing else.

Only within a whole sentence of a closed shape: "what is 3 tbsp in ml", "what is 20 percent of 150";
"is 5 cm valid CSS" asks about the letters.
"""

from __future__ import annotations

import re

from llm.same_question_en_words import listed

_NUMBER = r"=\d+(?:\.\d+)?"
_UNITS = {
    other: unit
    for unit, others in (
        ("km", "kilometer kilometers kilometre kilometres"),
        ("cm", "centimeter centimeters centimetre centimetres"),
        ("mm", "millimeter millimeters millimetre millimetres"),
        ("kg", "kilo kilos kilogram kilograms kilogramme kilogrammes"),
        ("ml", "milliliter milliliters millilitre millilitres"),
        ("tbsp", "tablespoon tablespoons"),
        ("tsp", "teaspoon teaspoons"),
        ("meters", "meter metre metres"),
        ("liters", "liter litre litres"),
        ("feet", "foot"),
        ("miles", "mile"),
        ("cups", "cup"),
        ("grams", "gram gramme grammes"),
        ("inches", "inch"),
    )
    for other in [unit, *others.split()]
}
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_CONVERTED = re.compile(
    rf"(?:what is|how much is|convert) ({_NUMBER}) ({_UNIT}) (?:in|to|into) ({_UNIT})"
)
_SHARE = re.compile(
    rf"(?:what|how much) is (?:({_NUMBER})%|({_NUMBER}) (?:percent|pct)) of ({_NUMBER})"
)
_SUM = re.compile(
    rf"(?:what|how much) is ({_NUMBER}) "
    rf"(plus|=\+|minus|times|=\*|=×|multiplied by|divided by|=÷) ({_NUMBER})"
)
_SIGNS = {"=+": "plus", "=*": "times", "=×": "times", "multiplied by": "times", "=÷": "divided by"}
_COOKING = listed("cook bake roast boil grill fry steam")

_CODE = listed("css html sql python code abbreviated")


def one_measure(words: list[str]) -> list[str]:
    """A question about measures with each unit and sign in one spelling."""
    text = " ".join(words)
    if found := _CONVERTED.fullmatch(text):
        number, unit, other = found.groups()
        return ["what", "is", number, _UNITS[unit], "in", _UNITS[other]]
    if found := _SHARE.fullmatch(text):
        return ["what", "is", found[1] or found[2], "percent", "of", found[3]]
    if found := _SUM.fullmatch(text):
        sign = _SIGNS.get(found[2], found[2])
        return ["what", "is", found[1], sign, found[3]]
    if words[:1] == ["how"] and not _COOKING.isdisjoint(words) and _CODE.isdisjoint(words):
        text = re.sub(rf"({_NUMBER}) ({_UNIT})(?= [a-z])", lambda m: f"{m[1]} {_UNITS[m[2]]}", text)
        text = re.sub(rf"( at {_NUMBER}) degrees (?:=C|=Celsius|celsius)(?= |$)", r"\1 =°C", text)
    text = re.sub(r"^how many square (?:meters|metres) ", "how many m² ", text)
    return text.split(" ")
