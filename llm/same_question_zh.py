"""When two Chinese questions ask the same: their normal forms are equal.

As in English (`same_question_en`): whatever no rewrite names is compared as it stands and in its
order, so 的, 把, 要, 了, numerals and the place of every word count. Chinese has no spaces, so the
closed lists are looked up among the words of a segmenter; the comparison itself is of characters,
so that it doesn't hang on where the segmenter cut. The rewrites:

1. *Framing* goes: 你好, 请问, 我想知道, 能告诉我…吗, 谢谢; 请, 帮我 only before a verb of asking such as
   列出; 你能…吗 only around an amount of what is wished for (推荐一本小说, not 推荐自己); bare 能不能 and 可不可以 only before 介绍一下 and the like (能不能计算 asks whether it can be). Not
   before somebody who may be the one to be told or asked (告诉我妈妈怎么做饭), not 告诉我什么时候
   (later), not 你知道…吗 without another question.
2. Nothing goes or changes, but the mark at the end, in a question *about words or with a text* to be
   worked on (意思, 怎么读, 翻译, 英语, 写, a colon); framing outside of quotation marks does.
3. *How* (怎样, 如何) and *why* (为什么, 为何, 为啥) are one word each, in their place. 怎么 and 咋 are "how" only at the start and before a
   closed list of deeds: 他怎么辞职, 头怎么疼 and 怎么迟到 ask why.
4. "什么是X" is "X是什么", where X isn't 今天, somebody or 红色的. "X是什么意思" isn't.
5. *Yes or no*: 能不能X is 能X吗, 可不可以 is 可以…吗, 是否X is X吗, but not within a clause (他说能不能去).
6. 有什么区别, 的区别是什么 and the like are one at the end; A and B keep their order.
7. Particles of tone (呢, 啊) go where something else asks (苹果呢 is a question of its own).
8. *Numbers* in characters are digits before a unit of measure of two characters (三公里), which is
   no name (三门, 五代, 一块); 两 and 一 alike, 二 never.
9. 啥, 哪儿, 何时 are 什么, 哪里, 什么时候. Latin words are compared as they are written, but for names
   that mean nothing else in small letters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from llm.chinese_words import is_person, segmented
from llm.same_question_en_tokens import caseless
from llm.same_question_zh_words import (
    ABOUT_WORDS,
    ASKING,
    CLAUSE_VERBS,
    DEEDS,
    DIFFERENCES,
    DIGITS,
    FOR_ME,
    GREETING,
    HOW,
    LATIN_NAMES,
    MODAL_WISHING,
    NOT_HOW,
    NOT_WHAT,
    PARTICLES,
    PEOPLE,
    POINTERS,
    PRONOUNS,
    QUESTION,
    QUESTION_WORDS,
    SYNONYMS,
    THANKS,
    UNASKED,
    UNITS,
    WHAT,
    WHY,
    WISHED_AMOUNT,
    WISHING,
    YES_NO,
)

# One mark directly after a word ends the sentence; "git add ." and "n!" have more to say.
_END = re.compile(r"(?<=[\w)\"”'」』》`])[?？.。]$")
_PIECE = re.compile(
    r"\"[^\"]*\"|“[^”]*”|'[^']*'|「[^」]*」|『[^』]*』|《[^》]*》|`[^`]*`"
    r"|(?<=[\u3400-\u9fff〇])\s+(?=[\u3400-\u9fff〇])|[\u3400-\u9fff〇]+|[^\s\u3400-\u9fff〇,、:;?.!~\"'()「」『』《》]"
    r"[^\s\u3400-\u9fff〇、\"「」『』《》]*|\S"
)
_QUOTED = re.compile(r"[\"“'「『《`].+[\"”'」』》`]", re.S)
_QUOTATION = re.compile(r"\".+\"|“.+”|「.+」|『.+』|`.+`")
_HAN = re.compile(r"[\u3400-\u9fff〇]+")
_ALTERNATIVE = re.compile("(能不能|可不可以|是不是|有没有|会不会|要不要)")
_NUMERAL = re.compile("([一两三四五六七八九])?(?:(十)([一二三四五六七八九])?|(百)|(千))?")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A question in normal form.

    Args:
        head: `what_is`, `yes_no`, `difference` or nothing.
        words: the rest, joined; a blank stands around what isn't Chinese.
        about_words: rule 2 holds.
    """

    head: str
    words: str
    about_words: bool


class NotReadError(Exception):
    """This rule doesn't read the text. The message is the reason's fixed name."""


def read(text: str) -> tuple[Sentence, ...]:
    """The normal form of a text on one line.

    Raises:
        NotReadError: there is nothing in it, or it isn't a question that this rule understands.
    """
    about_words = ABOUT_WORDS.search(text) is not None
    asked = False
    if not about_words or _QUOTATION.search(text):
        text, asked = _unframed(text)
    if not _HAN.search(text):
        raise NotReadError("empty")
    about_words = about_words or _has_text(text)
    words = _words(text, asked, about_words)
    about_words = about_words or any(_QUOTED.fullmatch(word) for word in words)
    return (_sentence(words, about_words),)


def same_form(a: tuple[Sentence, ...], b: tuple[Sentence, ...]) -> bool:
    """Whether two normal forms are the same. Symmetric."""
    return a == b


def _has_text(text: str) -> bool:
    """Whether something stands behind a colon, which a verb before it may be about."""
    return re.search("[:：](?!\\d)", text) is not None


def _unframed(text: str) -> tuple[str, bool]:
    """Without framing; and whether what went asked "can you tell me …?"."""
    asked = False
    # "你好，这礼貌吗": there the greeting may be what is asked about
    dangling = POINTERS.search(text) is not None
    while True:
        before = text
        text = FOR_ME.sub("", WISHED_AMOUNT.sub(r"\1", text))
        if not dangling:
            text = GREETING.sub("", text).strip()
            text = text if _has_text(text) else THANKS.sub("", text).strip()
        if (found := ASKING.match(text)) and _is_asked(found[0], text[found.end() :]):
            asked = asked or found[0].rstrip(",: ").endswith(("告诉我", "知道", "一下"))
            text = text[found.end() :]
        if found := WISHING.match(text) or MODAL_WISHING.match(text):
            asked = True
            text = text[found.end() :]
        if text == before:
            return text, asked


def _is_asked(asking: str, rest: str) -> bool:
    """Whether what follows is the question.

    "告诉我妈妈怎么做饭" may be for her to be told, "告诉我什么时候下雨" for later, and "你知道他来吗"
    asks who answers.
    """
    if not QUESTION.search(rest.rstrip("？?。. ").removesuffix("吗")):
        return False
    if len(rest.rstrip("？?。. ")) < 4:
        return False
    apart = asking[-1] in ",，:： " or asking.endswith(("请问", "请问一下", "请问下"))
    told = not apart and any(verb in asking for verb in ("问", "教", "询", "告诉"))
    if told and (rest.startswith(PEOPLE) or is_person(segmented(rest)[0])):
        return False
    return not ("告诉我" in asking and rest.startswith(("什么时候", "何时", "几点", "多久")))


def _words(text: str, asked: bool, about_words: bool) -> list[str]:
    """Words and signs, without the mark and the particles at the end."""
    words: list[str] = []
    for piece in _PIECE.findall(_END.sub("", text)):
        if _HAN.fullmatch(piece):
            # The segmenter cuts 能不能吃 into 能 and 不能.
            for part in _ALTERNATIVE.split(piece):
                words += [part] if part in YES_NO else segmented(part)
        elif (piece[0].isascii() and piece[0].isalnum()) or len(piece) > 1:
            bare = piece if _QUOTED.fullmatch(piece) else re.sub(r"[,;:?.]$", "", piece)
            words += [bare, *piece[len(bare) :]]
        else:
            words.append(piece)
    # "苹果呢" asks, "苹果" doesn't, and "怎么读啊" may ask about 啊.
    toneless = bool(QUESTION.search("".join(words))) and not about_words
    while toneless and words[-1] in PARTICLES and words[-2:-1] != ["是"]:
        words.pop()
    # "can you tell me how … 吗": the 吗 belongs to what is gone
    if asked and words[-1:] == ["吗"] and QUESTION.search("".join(words[:-1])):
        words.pop()
    return words


def _sentence(words: list[str], about_words: bool) -> Sentence:
    head = ""
    if not about_words:
        words = _counted([_named(SYNONYMS.get(word, word)) for word in words])
        head, words = _head(words)
    joined = "".join(word if _HAN.fullmatch(word) else f" {word} " for word in words)
    return Sentence(head, joined, about_words)


def _named(word: str) -> str:
    lower = word.lower()
    return lower if caseless(word) or word in LATIN_NAMES else word


def _counted(words: list[str]) -> list[str]:
    """Numerals as digits before a unit of measure."""
    return [
        _digits(word) if after in UNITS else word
        for word, after in zip(words, [*words[1:], ""], strict=True)
    ]


def _digits(word: str) -> str:
    """A numeral of the plainest form as its digits; 七八十 and 三百五 stay as they are."""
    plain = _NUMERAL.fullmatch(word)
    if plain is None or not word or word in ("百", "千"):
        return word
    ones, ten, more, hundred, thousand = plain.groups()
    value = DIGITS[ones] if ones else 1
    if ten:
        value = 10 * value + (DIGITS[more] if more else 0)
    return str(value * (100 if hundred else 1000 if thousand else 1))


def _head(words: list[str]) -> tuple[str, list[str]]:
    """The kind of question, and the words without what says so."""
    asking = [word for word in words if word in QUESTION_WORDS or word in HOW or word in WHY]
    if words[-1:] == ["吗"]:
        return ("yes_no", words[:-1]) if not asking else ("", words)
    yes_no = [place for place, word in enumerate(words) if word in YES_NO]
    # 他说能不能去 isn't 他说能去吗
    if len(yes_no) == 1 and not asking and not set(words) & (CLAUSE_VERBS | UNASKED):
        (place,) = yes_no
        return "yes_no", [*words[:place], YES_NO[words[place]], *words[place + 1 :]]
    if len(asking) != 1:
        return "", words
    for ending in DIFFERENCES:
        if tuple(words[-len(ending) :]) == ending:
            return "difference", words[: -len(ending)]
    if words[0] in WHAT and words[1:2] == ["是"] and _is_named(words[2:]):
        return "what_is", words[2:]
    if len(words) > 2 and words[-1] in WHAT and words[-2] == "是" and _is_named(words[:-2]):
        return "what_is", words[:-2]
    place = words.index(asking[0])
    if words[place] in WHY:
        return "", [*words[:place], "为什么", *words[place + 1 :]]
    if words[place] in HOW:
        return "", _how(words[:place], words[place], words[place + 1 :])
    return "", words


def _is_named(words: list[str]) -> bool:
    """Whether 什么是X is X是什么: not of 今天, of somebody, nor of 红色的, which may be many things."""
    return bool(words) and words[-1] != "的" and not set(words) & NOT_WHAT


def _how(before: list[str], how: str, rest: list[str]) -> list[str]:
    """怎样 as 如何, and 怎么 where it can't ask why (怎么手机没声音, 头怎么疼, 怎么迟到)."""
    unchanged = [*before, how, *rest]
    if not rest or rest[0] in NOT_HOW or any("不" in word or "没" in word for word in rest):
        return unchanged
    if how in ("怎么", "咋") and (
        before
        or rest[0] not in DEEDS
        or len(rest) < 2
        or rest[-1] in ("了", "的")
        or set(rest) & (NOT_HOW | PRONOUNS)
    ):
        return unchanged
    return [*before, "如何", *rest]
