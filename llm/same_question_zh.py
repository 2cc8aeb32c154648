"""When two Chinese questions ask the same: their normal forms are equal.

As in English (`same_question_en`): rewrites that change nothing in the answer, then everything
that is left is compared, in its order. Chinese has no spaces, so the closed lists are looked up
among the words of a segmenter; the comparison itself is of characters, so that it doesn't hang on
where the segmenter cut. The rules:

1. *Framing* goes: 你好, 请问, 我想知道, 能告诉我…吗, 谢谢; 请, 帮我 only before a verb of asking such as
   写一, 列出, 翻译; bare 能不能 and 可不可以 only before 介绍一下 and the like (能不能计算 asks whether it can
   be). Not before somebody who may be the one to be told or asked (告诉我妈妈怎么做饭), not 告诉我什么时候
   (later), not 你知道…吗 without another question, and nothing from a question about words that
   doesn't say about which (你好，用英语怎么说).
2. *How* (怎样, 如何, with 才, 才能 after it where nothing befalls anybody) and *why* (为什么, 为何, 为啥) are
   one word each. 怎么 and 咋 are "how" only with no subject or a thing that does nothing by itself:
   他怎么辞职, 头怎么疼 ask why. 该 and 要 stay. "How" may stand before or after 在, 用, 从, 对, 给 …; "why" may
   move where there is no other question word, no 只, 都 or 不 before it, and no verb that takes a
   clause (说, 知道, 让). "怎么把列表反转" is "列表怎么反转" for a closed list of things; a dog bites itself.
3. "什么是X" is "X是什么", where X isn't 今天, somebody or 红色的. "X是什么意思" isn't.
4. *Yes or no*: 能不能X is 能X吗, 可不可以 is 可以…吗, 是否X is X吗, but not within a clause (他说能不能去). 能, 可以, 会,
   要 and 该 are different; so are 了, 过 and 着, 不 and 没, 地, 得 and 的, 把 and 被.
5. 的 goes between a name and words such as 人口 and 首都 (政治意义 is no meaning of politics). Particles of tone
   (呢, 啊) go where something else asks (苹果呢 is a question of its own).
6. 一个 stays: 一个中国 isn't 中国. So do measure words, and blanks between characters.
7. *Numbers* in characters are digits before a measure word; 两 is 2 only before what isn't numbered
   too (二级 is the second, 两级 are two), 一 alike (一家, 一度). Two digits without a place
   word (五六岁) are no number: they stand in both questions to the character.
8. *Synonyms* are question words (啥, 何时) and spellings, these not where a spelling may be asked for. Latin
   words are names: compared as they are written, but for those that mean nothing else in small letters.
9. In a question *about words* (意思, 怎么读, 翻译, something in quotation marks) 5 to 8 don't count.
10. *Order* counts, but: "A和B" is "B和A" where the difference between them is asked and neither has
    more words than the other (中国苹果和梨); 在Python中 may stand at the start or after "how".
    Traditional characters are none of the simplified.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from llm.chinese_words import is_person, is_proper_name, segmented
from llm.same_question_en_tokens import caseless
from llm.same_question_en_words import SHORT_NAMES
from llm.same_question_zh_words import (
    ABOUT_WORDS,
    AFTER_DE,
    APPROXIMATE,
    ASKING,
    BEFALLS,
    CLAUSE_VERBS,
    DIGITS,
    FOCUSING,
    GREETING,
    HOW,
    HOW_AFTER,
    MEASURES,
    MODAL_WISHING,
    NOT_COUNTED,
    NOT_HOW,
    NOT_WHAT,
    ORDINAL_TOO,
    PARTICLES,
    PEOPLE,
    PLACING,
    PRONOUNS,
    QUESTION,
    QUESTION_WORDS,
    SCALES,
    SPELLING_COUNTS,
    SYMPTOMS,
    SYNONYMS,
    THANKS,
    THINGS,
    UNASKED,
    UNSAID,
    WHAT,
    WHY,
    WISHING,
    WITHIN_AFTER,
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
_HAN = re.compile(r"[\u3400-\u9fff〇]+")
_DIGITS_AND_TEN = (*DIGITS, "十")
_NUMERAL = re.compile("[零〇一二两三四五六七八九十百千万亿]+")
_ALTERNATIVE = re.compile("(能不能|可不可以|是不是|有没有|会不会|要不要)")
_COUNTED = re.compile(
    rf"({_NUMERAL.pattern})({'|'.join(sorted(MEASURES, key=len, reverse=True))})?"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A question in normal form.

    Args:
        head: `how`, `why`, `what_is`, `yes_no`, `difference` or nothing.
        words: the rest, joined; a blank stands around what isn't Chinese.
        within: X of 在X中.
        pair: A and B of their difference, in the order of their characters.
        about_words: rule 9 holds.
    """

    head: str
    words: str
    within: str
    pair: tuple[str, ...]
    about_words: bool


class NotReadError(Exception):
    """This rule doesn't read the text. The message is the reason's fixed name."""


def read(text: str) -> tuple[Sentence, ...]:
    """The normal form of a text on one line.

    Raises:
        NotReadError: there is nothing in it, or it isn't a question that this rule understands.
    """
    text, asked = _unframed(text)
    if not _HAN.search(text):
        raise NotReadError("empty")
    about_words = bool(ABOUT_WORDS.search(text))
    words = _words(text, asked, about_words)
    about_words = about_words or any(_QUOTED.fullmatch(word) for word in words)
    return (_sentence(words, about_words),)


def same_form(a: tuple[Sentence, ...], b: tuple[Sentence, ...]) -> bool:
    """Whether two normal forms are the same. Symmetric."""
    return a == b


def counts_alike(a: str, b: str) -> bool:
    """Whether what may be an approximate number stands in both to the character. Symmetric."""
    return APPROXIMATE.findall(a) == APPROXIMATE.findall(b)


def _unframed(text: str) -> tuple[str, bool]:
    """Without framing; and whether what went asked "can you tell me …?"."""
    asked = False
    # "你好，用英语怎么说？": there the greeting is what is asked about.
    dangling = UNSAID.search(text) is not None
    while True:
        before = text
        if not dangling:
            text = THANKS.sub("", GREETING.sub("", text)).strip()
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
    while toneless and words and words[-1] in PARTICLES:
        words.pop()
    # "can you tell me how … 吗": the 吗 belongs to what is gone
    if asked and words[-1:] == ["吗"] and QUESTION.search("".join(words[:-1])):
        words.pop()
    return words


def _sentence(words: list[str], about_words: bool) -> Sentence:
    if not about_words:
        spelled = SPELLING_COUNTS.search("".join(words)) is not None
        words = [_named(word if spelled else SYNONYMS.get(word, word)) for word in words]
        words = _counted(words)
    head, words = _head(words)
    within = ""
    pair: tuple[str, ...] = ()
    if not about_words:
        within, words = _within(words)
        if found := _difference(words):
            head, pair, words = found
        words = _without_de(words)
    joined = "".join(word if _HAN.fullmatch(word) else f" {word} " for word in words)
    return Sentence(head, joined, within, pair, about_words)


def _named(word: str) -> str:
    lower = word.lower()
    known = caseless(word) and lower != "ubuntu"  # in small letters it is a philosophy
    return SHORT_NAMES.get(lower, lower) if known else word


def _counted(words: list[str]) -> list[str]:
    """Numbers in characters as digits."""
    found: list[str] = []
    for place, word in enumerate(words):
        match = _COUNTED.fullmatch(word)
        after = words[place + 1] if place + 1 < len(words) else ""
        if (
            match
            and word not in NOT_COUNTED
            and match[1][0] in _DIGITS_AND_TEN
            and _counts(match[1], match[2] or after)
        ):
            value = _value(match[1])
            found += [word] if value is None else [str(value), *([match[2]] if match[2] else [])]
        else:
            found.append(word)
    return found


def _counts(numeral: str, measure: str) -> bool:
    """Whether a numeral before a measure word says how many, as its digits would.

    二级 is the second, 两级 are two, and 2级 is either; 一家 and 一度 are words of their own.
    """
    if numeral == "二":
        return measure in ("月", "号")
    if numeral in ("一", "两"):
        return measure in MEASURES and measure not in ORDINAL_TOO
    return measure in MEASURES


def _value(numeral: str) -> int | None:
    """The number that a numeral says; None where it isn't one of the plain form."""
    if not set(numeral) & set(SCALES):
        year = len(numeral) == 4 or len(numeral) == 1  # 二三 isn't 二十三
        return int("".join(str(DIGITS[sign]) for sign in numeral)) if year else None
    total, section, digit = 0, 0, None
    for sign in numeral:
        if sign in DIGITS:
            digit = DIGITS[sign]
        elif SCALES[sign] < 10_000:
            section += (1 if digit is None else digit) * SCALES[sign]
            digit = None
        else:
            total = (total + section + (digit or 0)) * SCALES[sign]
            section, digit = 0, None
    # 三百五 is 350, and 一万二 is 12,000: left as they are
    if digit and len(numeral) > 1 and numeral[-2] in SCALES and numeral[-2] != "十":
        return None
    return total + section + (digit or 0)


def _head(words: list[str]) -> tuple[str, list[str]]:
    """The kind of question, and the words without what says so."""
    asking = [word for word in words if word in QUESTION_WORDS or word in HOW or word in WHY]
    if words[-1:] == ["吗"]:
        return ("yes_no", words[:-1]) if not asking else ("", words)
    yes_no = [place for place, word in enumerate(words) if word in YES_NO]
    # 他说能不能去 isn't 他说能去吗
    unsure = set(words) & (CLAUSE_VERBS | UNASKED) - {
        "去",
        "来",
        "写",
        "学",
        "学习",
        "想",
        "爱",
        "喜欢",
        "帮",
        "帮助",
        "需要",
    }
    if len(yes_no) == 1 and not asking and not unsure:
        (place,) = yes_no
        kept = YES_NO[words[place]]
        return "yes_no", [*words[:place], *([kept] if kept else []), *words[place + 1 :]]
    if len(asking) != 1:
        return "", words
    if words[0] in WHAT and words[1:2] == ["是"] and _is_named(words[2:]):
        return "what_is", words[2:]
    if len(words) > 2 and words[-1] in WHAT and words[-2] == "是" and _is_named(words[:-2]):
        return "what_is", words[:-2]
    place = words.index(asking[0])
    after = words[place + 1] if place + 1 < len(words) else ""
    # 他为什么说狗死了 isn't 他说狗为什么死了: beside a verb that takes a clause its place counts
    free = place <= 3 and not set(words) & CLAUSE_VERBS
    free = free and not set(words[:place]) & FOCUSING
    if words[place] in WHY:
        if not free:
            return "", [*words[:place], "为什么", *words[place + 1 :]]
        return "why", [*words[:place], *words[place + 1 :]]
    if words[place] in HOW and after and after not in NOT_HOW and after[0] not in "不没":
        return _how(words, place, free)
    return "", words


def _is_named(words: list[str]) -> bool:
    """Whether 什么是X is X是什么: not of 今天, of somebody, nor of 红色的, which may be many things."""
    return bool(words) and words[-1] != "的" and not set(words) & NOT_WHAT


def _how(words: list[str], place: int, free: bool) -> tuple[str, list[str]]:
    """怎么 as 如何, wherever it doesn't ask why (怎么手机没声音, 头怎么疼)."""
    before, rest = words[:place], words[place + 1 :]
    if words[place] in ("怎么", "咋"):
        symptom = any(word.startswith(SYMPTOMS) for word in rest)
        subject = [word for word in before if _HAN.fullmatch(word) and word not in THINGS]
        placed = before[:1] and (
            before[0] in PLACING or (before[1:2] and before[1] in WITHIN_AFTER)
        )
        refused = any(word[0] in "不没" or "不" in word for word in rest)
        # 他怎么辞职 asks why, 他如何辞职 how; a list does nothing of its own
        if (before and symptom) or (subject and not placed) or refused:
            return "", [*before, "怎么", *rest]
        if words[-1] == "了" or rest[0] in PRONOUNS:
            return "", words
        if not before and set(words) & NOT_HOW:
            return "", words
    if not before:
        for only in HOW_AFTER:
            able = rest[: len(only)] == only and len(rest) > len(only)
            if able and not rest[len(only)].startswith(BEFALLS):
                rest = rest[len(only) :]
                break
    if not free or before[-1:] in (["该"], ["要"]):
        return "", [*before, "如何", *rest]
    if rest[:1] == ["把"] and len(rest) > 2 and rest[1] in THINGS and rest[2] not in WITHIN_AFTER:
        # 怎么把列表反转 is 列表怎么反转; 怎么把狗咬死 isn't 狗怎么咬死
        return "how", [*before, rest[1], "如何", *rest[2:]]
    if before and before[0] not in PLACING and not (before[1:2] and before[1] in WITHIN_AFTER):
        return "how", [*before, "如何", *rest]
    return "how", [*before, *rest]


def _within(words: list[str]) -> tuple[str, list[str]]:
    """Take out 在X中, X中, where X is the one Latin name of the sentence."""
    names = [place for place, word in enumerate(words) if not _HAN.fullmatch(word)]
    if len(names) != 1:
        return "", words
    (place,) = names
    if not words[place][0].isalpha() or words[place + 1 : place + 2] == []:
        return "", words
    if words[place + 1] not in WITHIN_AFTER or words[place + 2 : place + 3] == ["的"]:
        return "", words
    placed = place > 0 and words[place - 1] == "在"
    # 访问Docker里主机 says which host; 往Excel里 says whither
    if place and not placed:
        return "", words
    start = place - 1 if placed else place
    after = words[place + 1]
    after = "中" if after in ("里", "里面", "当中", "内") else after
    return f"{words[place]} {after}", [*words[:start], *words[place + 2 :]]


_PAIRING = {"与": "和", "跟": "和", "差别": "区别", "差异": "区别"}
_COUNTS = re.compile(r"^\d|^[零一二两三四五六七八九十百千万亿]+$")  # 3和5: their order has a sign


def _difference(words: list[str]) -> tuple[str, tuple[str, ...], list[str]] | None:
    """A和B有什么区别, A和B的区别是什么 (then without its 是什么), 有何区别."""
    text = " ".join(_PAIRING.get(word, word) for word in words)
    for ending in (
        " 有 什么 区别",
        " 有 什么 不同",
        " 有何 区别",
        " 有何 不同",
        " 的 区别",
        " 的 区别 是 什么",
        " 的 区别 在 哪里",
        " 之间 的 区别",
        " 之间 的 区别 是 什么",
        " 之间 有 什么 区别",
        " 之间 有 什么 不同",
        " 有 什么 不 一样",
    ):
        if text.endswith(ending) and text.count(" 和 ") == 1:
            sides = text.removesuffix(ending).split(" 和 ")
            lengths = {len(side.split()) for side in sides}
            # 中国苹果和梨: whether the pears are Chinese too hangs on the order
            if lengths in ({1}, {2}) and not any(map(_COUNTS.search, sides)):
                return "difference", tuple(sorted(sides)), []
    return None


def _is_name(word: str) -> bool:
    """Whether it is a name: 政治意义 is no meaning of politics, and 研究历史 may be a deed."""
    return len(word) > 1 and (word[0].isascii() or is_proper_name(word))


def _without_de(words: list[str]) -> list[str]:
    kept = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        after = words[place + 1] if place + 1 < len(words) else ""
        if word == "的" and after in AFTER_DE and _is_name(before):
            continue
        kept.append(word)
    return kept
