"""Whether two questions ask the very same, so that the answer to one answers the other.

The second stage of a similar hit: an embedding has proposed, this rule decides. It compares normal
forms, which the files for each language make, and refuses on any doubt: a question that is
answered anew costs seconds, a wrong answer costs trust. Deterministic, and no model has a say.

A text with Chinese characters is read by the Chinese rule, which takes Latin words within it as
names; English sentences within Chinese, and languages that neither rule reads, are refused.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from llm import same_question_en as english
from llm import same_question_zh as chinese

MAX_CHARS = 400
"""What is longer is compared by its characters alone."""

_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_OTHER_SCRIPT = re.compile(r"[^\W\d_a-zA-Z²³\u00c0-\u024f\u3400-\u4dbf\u4e00-\u9fff]")
_ENGLISH_RUN = re.compile(r"(?:[A-Za-z]+[ ,']+){3,}[A-Za-z]+")
_NEGATION = re.compile(
    r"\b(?:not|no|never|without|cannot|none|neither|nor|except|un\w+)\b|n't\b|[不没无非别勿未]"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*|[零一二两三四五六七八九十百千万亿]+")
_CODE = re.compile(r"\S*[\w)][_+#=<>{}\[\]\\/|&*^~@$][^\s]*|`[^`]*`")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|「[^」]*」|《[^》]*》|『[^』]*』")
_ABOUT_SIGNS = re.compile(
    r"quot|apostrophe|full-?width|half-?width|curly|accent|whitespace|\bspaces?\b"
    r"|\blengths?\b|\bencod|\bdecod|\bcode ?points?\b|unicode|utf|ascii|\bbytes?\b|\bcharacters?\b"
    r"|引号|全角|半角|标点|空格|符号|冒号|逗号|分号|括号|句号|顿号|问号|感叹号"
    r"|编码|解码|码点|字节|字符|长度",
    re.I,
)
"""Where a question may be about the very characters that are unified below."""
_TO_THE_LETTER = re.compile(r"[`\"=<>+*/|&^~#$\\{}\[\]]|(?<!\w)'|'(?!\w)|[A-Za-z_]\w*\(")
"""Quotes, calls and operators: what stands in and beside them is meant as it is typed."""
_WIDE = re.compile(r"[\uff01-\uff5e\u3000‘’“”]|[ \t]{2,}")
# Between two clauses; "Python里；是什么" asks about the sign, and so does one that stands alone.
_MARKS = re.compile(
    r"(?<=\w)？$|(?<=[^\W的里中内用是在和与把打写读入出个])"
    r"(?:[，：](?=[㐀-鿿])(?![是有和与的在])|？(?=\s)"
    r"|(?<=[㐀-鿿])[！？](?=[㐀-鿿])(?![是有和与的在]))"
)
_GREETED = re.compile(r"^(Hello|Hi|Hey)，(?= ?[A-Za-z])")
_SUM = re.compile(r"(?=.*\d)[\d+\-*/().=? ]+")
_ALL_WIDE = re.compile(r"(?=.*[\uff01-\uff5e][ \u3000][\uff01-\uff5e])[\uff01-\uff5e \u3000]+")
"""Two words or more, each sign of which is wide: so is the keyboard, and none of them is meant."""
_MEANT = re.compile(r"输入|键盘|打出|(?=.*[０-９]).*[0-9]")
"""Where it may be asked how a wide digit is typed, or two widths stand beside each other."""
_NARROW = re.compile(r"[!->@-~]")
_WIDE_NUMBER = re.compile(r"[０-９]+(?:[．／＋－＝：，][０-９]+)*％?")
"""A number or sum where nothing but a mark at the end is narrow."""
_RUNS = re.compile(r"[０-９Ａ-Ｚａ-ｚ][０-９Ａ-Ｚａ-ｚ．：，]*[０-９Ａ-Ｚａ-ｚ％]|[０-９]+％?")
_APOSTROPHE = re.compile(r"(?<=[A-Za-z])’(?=[A-Za-z])")
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
_QUOTES = str.maketrans("‘’“”", "''\"\"")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rule says of two questions.

    Args:
        same: the answer to the one may be given to the other.
        reason: a fixed name: what they differ in, or why they weren't compared; `identical` or
            `rewrites` where they are the same.
    """

    same: bool
    reason: str


def same_question(a: str, b: str) -> Verdict:
    """Say whether two questions ask the same. Symmetric; raises nothing.

    Thread-safety: may be called from any thread.
    """
    if not a.strip() or not b.strip():
        return Verdict(False, "empty")
    if a == b:
        return Verdict(True, "identical")
    if max(len(a), len(b)) > MAX_CHARS:
        return Verdict(False, "long")
    exact = _ABOUT_SIGNS.search(a + b) or _to_the_letter(a) or ":" in a.translate(_FULL_WIDTH)
    if exact and any(
        text.strip("\n") != text.strip() for text in (a, b)
    ):  # "the length of: abc " may end in a blank
        return Verdict(False, "code")
    a, _, rest = a.strip().partition("\n")
    b, _, other_rest = b.strip().partition("\n")
    if rest != other_rest:  # pasted text and code: to the character
        return Verdict(False, "lines")
    if a + b != unicodedata.normalize("NFC", a + b):  # how é is composed may be the question
        return Verdict(False, "code")
    if bool(_CHINESE.search(a)) != bool(_CHINESE.search(b)):
        return Verdict(False, "language")
    if _ABOUT_SIGNS.search(a + b) and a != b:
        return Verdict(False, "code")
    a, b = _marks_unified(_typed_wide(a)), _marks_unified(_typed_wide(b))
    if _to_the_letter(a) or _to_the_letter(b):
        if sorted(_QUOTED.findall(a)) != sorted(_QUOTED.findall(b)):
            return Verdict(False, "quoted")
        if sorted(_WIDE.findall(a)) != sorted(_WIDE.findall(b)):
            return Verdict(False, "code")
    else:
        a, b = _unified(a), _unified(b)
    if a == b:
        return Verdict(True, "identical")
    try:
        same = (
            chinese.same_form(_read_chinese(a), _read_chinese(b))
            if _CHINESE.search(a)
            else english.same_form(_read_english(a), _read_english(b))
        )
    except (english.NotReadError, chinese.NotReadError) as refused:
        return Verdict(False, str(refused))
    return Verdict(True, "rewrites") if same else Verdict(False, _difference(a, b))


def _marks_unified(text: str) -> str:
    """One spelling of the marks between Chinese words and at the end, which are no code's."""
    return _MARKS.sub(lambda mark: mark[0].translate(_FULL_WIDTH), text)


def _typed_wide(text: str) -> str:
    """A sum, or a whole text typed in wide signs, in narrow ones."""
    narrow = text.translate(_FULL_WIDTH)
    if _SUM.fullmatch(narrow) or _ALL_WIDE.fullmatch(text):
        return narrow
    if not _NARROW.search(text) and not _MEANT.search(text):
        text = _WIDE_NUMBER.sub(lambda number: number[0].translate(_FULL_WIDTH), text)
    return _GREETED.sub(r"\1,", text)


def _to_the_letter(text: str) -> bool:
    """Whether it has code or a quotation, in which width, quotes and blanks may be the point."""
    narrow = text.translate(_FULL_WIDTH).translate(_QUOTES)
    return _CODE.search(narrow) is not None or _TO_THE_LETTER.search(narrow) is not None


def _unified(text: str) -> str:
    """One spelling of what can't be the point: wide numbers and words, the curly apostrophe."""
    if not _MEANT.search(text):
        text = _RUNS.sub(lambda run: run[0].translate(_FULL_WIDTH), text)
    return " ".join(_APOSTROPHE.sub("'", text).split())


@lru_cache(maxsize=2048)
def _read_english(text: str) -> tuple[english.Sentence, ...]:
    if _OTHER_SCRIPT.search(text):
        raise english.NotReadError("language")
    return english.read(text)


@lru_cache(maxsize=2048)
def _read_chinese(text: str) -> tuple[chinese.Sentence, ...]:
    if _OTHER_SCRIPT.search(text) or _ENGLISH_RUN.search(text):
        raise chinese.NotReadError("language")
    return chinese.read(text)


def _difference(a: str, b: str) -> str:
    """What to call the difference: the first that both texts show by their own signs."""
    for name, pattern in (
        ("quoted", _QUOTED),
        ("code", _CODE),
        ("numbers", _NUMBER),
    ):
        if sorted(pattern.findall(a)) != sorted(pattern.findall(b)):
            return name
    if len(_NEGATION.findall(a.lower())) != len(_NEGATION.findall(b.lower())):
        return "negation"
    if _bag(a) == _bag(b):
        return "order"
    if _capitals(a) != _capitals(b):
        return "names"
    return "words"


def _bag(text: str) -> list[str]:
    return sorted(re.findall(r"\w+", text.lower()) if not _CHINESE.search(text) else [*text])


def _capitals(text: str) -> list[str]:
    return sorted(re.findall(r"(?<!^)\b[A-Z]\w*", text))
