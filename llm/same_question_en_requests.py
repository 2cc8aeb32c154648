"""An English request in one form: "can you explain X" and "explain X", "name the stages of X".

Each shape is a whole sentence, its words joined by blanks, and holds only for words of a closed list:
"give me the capital of X" is "what is the capital of X", "name the children of X" may be a wish.
What the shapes leave open (X) is compared as it stands.
"""

from __future__ import annotations

import re

_NUMBER = r"=\d+(?:\.\d+)?"
_X = r"[^,:;]+"  # no second clause, in which somebody may say how he wants it
_TELL = (
    r"(?:(?:(?:can|could) you (?:please )?|please )?(?:tell|give) me|give|state"
    r"|do you (?:happen to )?know|i (?:want|need|would like) to know)"
)
_FIGURE = (
    "capital|population|currency|square root|cube root|chemical formula|chemical symbol"
    "|boiling point|melting point|freezing point|atomic number|atomic mass|molar mass"
    "|integral|derivative|circumference"
)
_LISTED = (
    "stages|phases|symptoms|causes|ingredients|components|types|kinds|benefits|advantages"
    "|disadvantages|side effects|risk factors|main causes|main types|main components"
    "|signs and symptoms|pros and cons|functions|properties|characteristics|layers"
)
_COUNTED = (
    "uses|examples|types|kinds|benefits|advantages|disadvantages|symptoms|causes|sources"
    "|properties|characteristics|side effects"
)
_IDEA = "effect|theorem|principle|paradox|hypothesis|conjecture|uncertainty principle|rule"
_FEW = "two|three|four|five|six|seven|eight|nine|ten"
_SENSED = "taste|smell|flavor|flavour|texture|sound"
_ARTICLE = r"an? [a-z-]+"
_CLAUSE = (
    r"(?:if|when|to|that|without|in|like|as|again|yourself|your|my|me|ever|everything|anything|all|why|how|what|who|where|i|you|with|by|using|for|from|away|"
    r"well|better|more|further|now|here|on|at|before|after|during|until|today|tomorrow|tonight|twice|this|things|\w+ly)"
)
# "Can you list the properties of X on eBay" asks what may be done there.
_BARE = r"(?!.*\b(?:on|in|under|at|with|without|if|when|as|from|by|for|twice|\w+ly)\b)[^,:;]+"
_TEXT = (
    "poem|story|song|speech|haiku|limerick|essay|letter|cover letter|packing list|shopping list"
    "|to-do list|toast|bedtime story|short story|short poem|love letter|blog post|birthday card"
)
_AMOUNT = "celsius|fahrenheit|dollars|euros|km|cm|kg|ml|miles|feet|inches|kilometers|cups"

_SHAPES = [
    (re.compile(shape), form)
    for shape, form in (
        # "Name", not "explain": of a price that asks why it is so.
        (rf"{_TELL} the ((?:{_FIGURE}) of {_X})", r"what is the \1"),
        (rf"what is the capital city of ({_X})", r"what is the capital of \1"),
        (
            rf"(?:name|list|give|(?:tell|give) me) the ((?:{_LISTED}) of {_X})",
            r"what are the \1",
        ),
        (
            rf"(?:can|could) you (?:name|list|(?:tell|give) me) the ((?:{_LISTED}) of {_BARE})",
            r"what are the \1",
        ),
        (
            rf"(?:(?:give|tell) me|give|name|list) ((?:{_FEW}) (?:{_COUNTED}) of {_X})",
            r"what are \1",
        ),
        (
            rf"(?:can|could) you (?:(?:give|tell) me|name|list) ((?:{_FEW}) (?:{_COUNTED}) of {_BARE})",
            r"what are \1",
        ),
        (
            rf"(?:(?:can|could) you )?(?:suggest|recommend)"
            rf" ((?:some )?good [a-z]+s (?:to|for) {_X})",
            r"what are \1",
        ),
        # An idea that bears somebody's name is explained where it is asked for.
        (rf"explain the (=[A-Z][a-z'-]+ (?:{_IDEA}))", r"what is the \1"),
        # Between kinds; "between revenue and costs" is a sum.
        (
            rf"explain the difference between ({_ARTICLE} and {_ARTICLE})",
            r"what is the difference between \1",
        ),
        (
            rf"(?:can|could) you explain ((?!.*\b{_CLAUSE}\b)(?!to\b){_X})",
            r"explain \1",
        ),
        (rf"(?:can|could) you describe (the (?!.*\b{_CLAUSE}\b){_X})", r"describe \1"),
        (rf"how would you describe (the (?:{_SENSED}) of {_X})", r"describe \1"),
        (
            rf"(?:can|could) you (?:please )?(tell me about (?!.*\b{_CLAUSE}\b){_X})",
            r"\1",
        ),
        (
            rf"(?:can|could) you (give me (?:an example|examples|some examples) of {_X})",
            r"\1",
        ),
        (
            rf"(?:can|could) you ((?:recommend|suggest) a good (?!friend|person|student|.*\b{_CLAUSE}\b){_X})",
            r"\1",
        ),
        (
            r"(?:(?:(?:can|could|will) you )?tell (?:me |us )?|(?:can|could) (?:i|we) have |give (?:me|us) )"
            rf"(a joke(?: about {_X})?)",
            r"tell \1",
        ),
        (
            rf"(?:(?:can|could) you |are you able to )(convert {_NUMBER} (?:(?:{_AMOUNT}) )?to [a-z]+)",
            r"\1",
        ),
    )
]

_NAMED = re.compile(rf"name (?:the (?:{_LISTED})|(?:{_FEW}) (?:{_COUNTED})) of ")
_QUOTED = r"=?\"[^\"]+\""
_NO_THING = r"(?!.*\b(?:the|an?|it|this|that|these|those|my|your|its|such|they|he|she)\b)"
_ASK = (
    r"(?:(?:(?:can|could|would) you (?:please )?|please )?(?:tell me|explain)|do you know|may i ask"
    r"|can i ask|could i ask|i (?:want|need|would like) to know|i wonder|i was wondering)"
)
_GREETING = r"(?:(?:hi|hello|hey|sorry|excuse me|good morning|good evening)(?: there)? , )?"
_THANKS = r"(?: , (?:please|thanks|thank you))?"
_VERBATIM = [
    (re.compile(f"{_GREETING}{shape}{_THANKS}", re.I), form)
    for shape, form in (
        (rf"{_ASK} what ({_NO_THING}[^,:;]+) means", r"what does \1 mean"),
        (rf"what does ({_NO_THING}[^,:;]+) mean", r"what does \1 mean"),
        (
            rf"how (?:do (?:you|I) |to |can I )(pronounce|spell) ({_QUOTED})",
            r"how is \2 \1ed",
        ),
        (rf"how is ({_QUOTED}) (spell|pronounc)(?:t|e?d)", r"how is \1 \2ed"),
        (rf"how (?:do (?:you|I) |to |can I )say ({_QUOTED}) in (\w+)", r"how to say \1 in \2"),
        (
            r"what do you call (a (?:baby|male|female) [a-z]+|a group of [a-z]+)",
            r"what is \1 called",
        ),
        (
            rf"(?:(?:can|could|would|will) you (?:please )?|please )?=?translate ({_QUOTED}) (?:in)?to (\w+)",
            r"translate \1 into \2",
        ),
        (
            rf"(?:(?:can|could|will) you (?:please )?)?=?write (me an? (?:{_TEXT})(?: (?!.*\b(?:if|when|tomorrow|back|again)\b)[^,:;]+)?)",
            r"write \1",
        ),
    )
]
_BOTHERED = re.compile(
    r"(?:(?:hi|hello|hey)(?: there)? , )?(?:sorry to bother you|excuse me) , but (?!.*\b(?:it|this|that)\b)",
    re.I,
)
_OWN = re.compile(
    rf"what does {_NO_THING}\S+(?: \S+){{0,2}} mean|how is (?!it\b|that\b|this\b)\S+ (?:pronounc|spell)ed"
)


def is_list_asked_for(words: list[str]) -> bool:
    """Whether "name the stages of X" wants them told, and gives nothing a name."""
    return words.count("name") == 1 and _NAMED.match(" ".join(words)) is not None


def in_one_form(words: list[str]) -> tuple[list[str], bool]:
    """A question or request in one form; and whether it was changed."""
    return _formed(words, _SHAPES)


def verbatim_in_one_form(words: list[str]) -> tuple[list[str], bool]:
    """The same for a question about words, of which every letter counts."""
    apart = _BOTHERED.match(" ".join(words))
    return _formed(words[apart[0].count(" ") :] if apart else words, _VERBATIM)


def has_own_object(words: list[str]) -> bool:
    """Whether a question about words names them, so that no greeting beside it can be meant."""
    return _OWN.fullmatch(" ".join(words)) is not None


def _formed(words: list[str], shapes: list[tuple[re.Pattern[str], str]]) -> tuple[list[str], bool]:
    text = " ".join(words)
    for shape, form in shapes:
        if found := shape.fullmatch(text):
            return found.expand(form).split(" "), True
    return words, False
