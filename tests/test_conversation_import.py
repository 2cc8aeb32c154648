"""Conversations from files of other apps and of this one, whatever stands in them."""

from __future__ import annotations

import io
import json
import logging
import random
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from llm import conversation_import, json_entries, message_tree
from llm.catalogue import catalogue
from llm.conversation_import import ImportResult, own_mark, read
from llm.conversation_tree import ConversationState, Receipt, Turn
from llm.errors import ImportDamagedError, ImportFileError, ImportTooLargeError, LLMError
from llm.types import Finish, Usage

DATA = Path(__file__).parent / "data" / "import"
CHATGPT = (DATA / "chatgpt.json").read_bytes()
OPEN_WEBUI = (DATA / "open_webui.json").read_bytes()


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def message(role: str, text: object = "hi", **values: object) -> dict[str, Any]:
    return {
        "author": {"role": role},
        "content": {"content_type": "text", "parts": [text]},
        **values,
    }


def chatgpt(*nodes: tuple[str, str | None, str], **values: object) -> dict[str, Any]:
    """A conversation of nodes given as id, parent and role; each says its id."""
    tree = {
        key: {"id": key, "parent": parent, "message": message(role, key)}
        for key, parent, role in nodes
    }
    return {"title": "t", "mapping": tree, **values}


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def asked(state: ConversationState) -> list[tuple[str, str]]:
    return [(turn.question, turn.text) for turn in state.path()]


def only(data: bytes | object) -> ConversationState:
    result = read(data if isinstance(data, bytes) else as_json(data))
    assert result.problems == []
    assert len(result.conversations) == 1
    return result.conversations[0]


def reasons(result: ImportResult) -> list[tuple[int, str]]:
    return [(problem.row, problem.reason.message_id) for problem in result.problems]


def by_text(state: ConversationState, text: str) -> Turn:
    return next(turn for turn in state.turns.values() if text in (turn.question, turn.text))


# ChatGPT


def test_a_chatgpt_export_comes_in_as_the_page_there_shows_it() -> None:
    result = read(CHATGPT)
    assert reasons(result) == [(1, "reason-import-left-out"), (3, "reason-import-no-messages")]
    assert [problem.left_out for problem in result.problems] == [False, True]
    weather, hello = result.conversations
    head = weather.head
    assert (head.title, head.title_by, head.pinned) == ("杭州天气 ☀️", "model", False)
    assert (head.created_s, head.updated_s) == (1717236000.25, 1717236200.5)
    assert head.key.owner == ""
    assert asked(weather) == [
        (
            "杭州今天天气怎么样？🌤️",
            "```python\nprint(9/5*25+32)\n```\n\n```\n77.0\n```\n\n"
            "晴，25°C ([天气网](https://example.org/))。见 Official site。",
        ),
        ("这是什么？", "一只猫🐈"),
    ]
    first = weather.path()[0]
    assert first.reasoning == "**查天气**\n\n先搜索再回答。"
    assert first.receipt == Receipt("gpt-4o", Finish("length"), reasoning_s=8)
    assert (first.backend, first.state, first.created_s) == ("", "ended", 1717236001)
    assert asked(hello) == [("", "Hello! What shall we do?"), ("Nothing.", "")]
    assert (hello.head.title, hello.head.title_by) == ("Nothing.", "question")


def test_other_answers_and_changed_questions_stand_beside() -> None:
    weather = read(CHATGPT).conversations[0]
    beside = weather.variants()[weather.path()[0].turn_id]
    told = [(weather.turns[key].question, weather.turns[key].text) for key in beside]
    assert [answer[:5] for _, answer in told] == ["```py", "我不知道。", ""]
    assert [question[:2] for question, _ in told] == ["杭州", "杭州", "上海"]


def test_an_answer_that_was_continued_two_ways_becomes_two_answers() -> None:
    tree = chatgpt(
        ("q", None, "user"), ("a", "q", "assistant"), ("b", "a", "assistant"),
        ("c", "a", "assistant"), ("next", "b", "user"), current_node="c",
    )  # fmt: skip
    state = only([tree])
    assert sorted(turn.text for turn in state.turns.values()) == ["", "a\n\nb", "a\n\nc"]
    assert asked(state) == [("q", "a\n\nc")]
    following = by_text(state, "next")
    assert state.turns[following.parent].text == "a\n\nb"


def test_a_hidden_message_leads_on_and_is_not_told() -> None:
    tree = chatgpt(("q", None, "user"), ("h", "q", "system"), ("a", "h", "assistant"))
    tree["mapping"]["h"]["message"]["weight"] = 0
    assert asked(only([tree])) == [("q", "a")]


def test_a_system_message_that_is_shown_becomes_the_system_prompt() -> None:
    state = only([chatgpt(("s", None, "system"), ("q", "s", "user"), ("a", "q", "assistant"))])
    assert [turn.system_prompt for turn in state.path()] == ["s"]


def test_without_a_current_message_the_newest_branch_is_shown() -> None:
    for current in (None, "gone", 7, {"a": 1}):
        nodes = [("q", None, "user"), ("a", "q", "assistant"), ("b", "q", "assistant")]
        assert asked(only([chatgpt(*nodes, current_node=current)])) == [("q", "b")]


def test_a_current_message_in_the_middle_hides_nothing_below_it() -> None:
    tree = chatgpt(
        ("q", None, "user"), ("a", "q", "assistant"), ("r", "a", "user"), current_node="q"
    )
    assert asked(only([tree])) == [("q", "a"), ("r", "")]


def test_one_conversation_alone_is_read_too() -> None:
    assert asked(only(chatgpt(("q", None, "user")))) == [("q", "")]
    assert asked(only({"conversations": [chatgpt(("q", None, "user"))]})) == [("q", "")]


# Open WebUI


def test_an_open_webui_export_comes_in_with_its_reasoning_apart() -> None:
    result = read(OPEN_WEBUI)
    assert reasons(result) == [(1, "reason-import-left-out")]
    state = result.conversations[0]
    assert (state.head.title, state.head.pinned) == ("🧮 数学", True)
    assert (state.head.created_s, state.head.updated_s) == (1717236000, 1717236012)
    assert asked(state) == [("2+2=?", "答案是 **4**。\n\n完。"), ("谢谢", "")]
    first, last = state.path()
    assert first.reasoning == "二加二 < 五\n\n所以是四"
    assert first.receipt == Receipt("Qwen3 8B", Finish("stop", Usage(12, 34)), reasoning_s=3)
    assert first.system_prompt == "简短回答。"
    assert last.receipt == Receipt("qwen3:8b", Finish("error"))
    other = state.turns[state.variants()[first.turn_id][1]]
    assert (other.text, other.reasoning, other.receipt) == (
        "4", "hm", Receipt("llama3.2:3b", Finish("stop")),
    )  # fmt: skip


def test_open_webui_without_a_tree_or_a_list_around_it() -> None:
    chat = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    assert asked(only({"id": "x", "chat": chat})) == [("q", "a")]
    single = json.loads(OPEN_WEBUI)[0]
    assert len(read(as_json(single)).conversations) == 1
    assert len(read(as_json(single["chat"])).conversations) == 1


def test_open_webui_answers_kept_as_a_list_of_parts() -> None:
    output = [
        {"type": "reasoning", "duration": 2, "content": [{"type": "t", "text": "hm"}]},
        {"type": "function_call", "name": "x", "arguments": "{}"},
        {"type": "message", "content": [{"type": "output_text", "text": "four"}]},
    ]
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "q"}]},
        {"role": "assistant", "content": "", "output": output},
    ]
    state = only({"chat": {"messages": messages}})
    assert asked(state) == [("q", "four")]
    assert (state.path()[0].reasoning, state.path()[0].receipt.reasoning_s) == ("hm", 2)  # type: ignore[union-attr]


def test_details_that_never_end_are_text() -> None:
    for text in ('<details type="reasoning"', '<details type="reasoning">\nhm', "<details>x"):
        messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": text}]
        assert asked(only({"chat": {"messages": messages}})) == [("q", text)]


@pytest.mark.parametrize(
    "body",
    [
        " ",
        "\n",
        "<summary>",
        "<details ",
        '<details type="reasoning">',
        "&gt;",
        "> ",
        "&gt; &#" + "9" * 5_000,
    ],
    ids=lambda text: repr(text[:9]),
)
def test_a_megabyte_of_anything_in_details_is_read_quickly(body: str) -> None:
    text = f'<details type="reasoning">{body * (1_000_000 // len(body))}x</details>after'
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": text}]
    started = time.process_time()
    assert only({"chat": {"messages": messages}}).path()[0].text.endswith("after")
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize(
    "text",
    ["【", "【" + "†" * 280, "\ue200", "\ue201", " \ue200a", "`", "】†"],
    ids=lambda text: ascii(text[:2]),
)
def test_a_megabyte_of_marks_is_read_quickly(text: str) -> None:
    text = "†\ue200" + text * (1_000_000 // len(text))
    started = time.process_time()
    assert only(chatgpt(("q", None, "user"), (text, "q", "assistant")))
    assert time.process_time() - started < 5.0


# Marks and ids


def test_the_same_conversation_has_the_same_mark_and_always_new_ids() -> None:
    once, again = read(CHATGPT).conversations, read(CHATGPT).conversations
    assert [one.head.import_mark for one in once] == [one.head.import_mark for one in again]
    assert once[0].head.import_mark == "chatgpt:665b0000-0000-8000-8000-000000000001"
    assert once[1].head.import_mark.startswith("chatgpt:")
    assert once[0].head.key != again[0].head.key
    assert not set(once[0].turns) & set(again[0].turns)
    changed = json.loads(CHATGPT)[1]
    changed["mapping"]["b"]["message"]["content"]["parts"] = ["Something."]
    assert only([changed]).head.import_mark != once[1].head.import_mark


@pytest.mark.parametrize("own_id", ["x" * 500, "漢" * 79, 12, "a:b"])
def test_a_mark_fits_whatever_an_id_is(own_id: object) -> None:
    mark = only([chatgpt(("q", None, "user"), id=own_id)]).head.import_mark
    assert mark.startswith("chatgpt:")
    assert len(mark) <= 80
    assert mark == only([chatgpt(("q", None, "user"), id=own_id)]).head.import_mark


def test_a_conversation_made_here_is_known_by_its_id() -> None:
    told = {"id": "abc", "title": "t", "turns": [{"id": "1", "question": "q"}]}
    assert only([told]).head.import_mark == own_mark("abc") == "steady-chat:abc"


# ZIPs


def test_a_zip_is_opened_wherever_in_it_the_conversations_stand() -> None:
    files = {
        "Export/conversations-000.json": as_json([chatgpt(("q", None, "user"))]),
        "Export/conversations-001.json": as_json([{}, chatgpt(("r", None, "user"))]),
        "Export/user.json": b'{"email": "a@b"}',
        "Export/picture.png": b"\x89PNG",
        "__MACOSX/Export/._conversations-000.json": b"\0\5\x16\7",
    }
    result = read(zipped(**files))
    assert [state.path()[0].question for state in result.conversations] == ["q", "r"]
    assert [(one.file, one.row) for one in result.problems] == [
        ("Export/conversations-001.json", 1)
    ]


def test_a_zip_whose_files_are_called_otherwise_is_read_too() -> None:
    result = read(zipped(**{"my chats.json": OPEN_WEBUI, "other.json": b"[1, 2]", "a.json": b"x"}))
    assert len(result.conversations) == 1
    assert reasons(result) == [(1, "reason-import-left-out")]


def test_a_zip_without_conversations_is_said_to_have_none() -> None:
    for files in ({}, {"a.txt": b"[]"}, {"a.json": b"hello"}, {"a.json": b'{"a": 1}'}):
        with pytest.raises(ImportFileError) as told:
            read(zipped(**files))
        assert type(told.value) is ImportFileError


def test_a_zip_bomb_is_stopped_and_what_came_before_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversation_import, "MAX_UNPACKED_BYTES", 5_000_000)
    bomb = zipped(
        **{
            "conversations-000.json": as_json([chatgpt(("q", None, "user"))]),
            "conversations-001.json": b"[" + b" " * 50_000_000 + b"]",
            "conversations-002.json": as_json([chatgpt(("q", None, "user"))]),
        }
    )
    tracemalloc.start()
    result = read(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(result.conversations) == 1
    assert reasons(result) == [(0, "reason-import-unpacked")]
    assert peak < 20_000_000


def test_a_zip_of_very_many_files_is_refused_before_its_list_is_read() -> None:
    entry = b"PK\x01\x02" + bytes(42)
    with pytest.raises(ImportFileError):
        read(b"PK\x03\x04" + entry * (conversation_import.MAX_MEMBERS + 1))


@pytest.mark.parametrize("hurt", [b"\xff" * 30, b""])
def test_a_damaged_file_in_a_zip_does_not_keep_the_others_out(hurt: bytes) -> None:
    good = as_json([chatgpt(("q", None, "user"))])
    data = zipped(**{"conversations-000.json": good, "conversations-001.json": good})
    at = data.index(b"conversations-000.json") + len("conversations-000.json")
    result = read(data[:at] + hurt + data[at + len(hurt) :])
    assert len(result.conversations) == (1 if hurt else 2)
    assert reasons(result) == ([(0, "reason-import-packed")] if hurt else [])


# Whatever stands in a file


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b"\x89PNG\r\n",
        b"{}",
        b'{"a": 1}',
        b"[1, 2]",
        b'[{"id": 1}]',
        b"null",
        b'"x"',
        b"7",
    ],
)
def test_a_file_of_another_kind_is_named_so(data: bytes) -> None:
    with pytest.raises(ImportFileError) as told:
        read(data)
    assert type(told.value) is ImportFileError


@pytest.mark.parametrize("data", [b"", b" ", b"[", b'[{"mapping": {', b"{", b'{"mapping": {}, '])
def test_an_empty_or_cut_file_is_an_error(data: bytes) -> None:
    with pytest.raises(ImportFileError):
        read(data)


def test_a_cut_file_says_that_it_is_damaged() -> None:
    with pytest.raises(ImportDamagedError):
        read(CHATGPT[:500])
    with pytest.raises(ImportDamagedError):
        read(zipped(**{"conversations.json": CHATGPT})[:300])


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_import, "MAX_IMPORT_BYTES", 1_000_000)
    with pytest.raises(ImportTooLargeError, match="1 MB"):
        read(b"[" + b" " * 1_000_000)


def test_an_export_of_nothing_holds_nothing() -> None:
    for data in (b"[]", b'{"format": "steady-chat", "version": 1, "conversations": []}'):
        assert read(data) == ImportResult()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_every_encoding_of_json_is_read(encoding: str) -> None:
    data = CHATGPT.decode().encode(encoding)
    assert read(data).conversations[0].head.title == "杭州天气 ☀️"


def test_an_entry_that_cannot_be_read_keeps_no_other_out() -> None:
    good = json.dumps(chatgpt(("q", None, "user")))
    deep = "[" * 100_000 + "]" * 100_000
    data = f'[{good}, 7, {deep}, {{"mapping": 1}}, {good}, {{"title": "x", '.encode()
    result = read(data)
    assert len(result.conversations) == 2
    assert reasons(result) == [
        (2, "reason-import-entry"),
        (3, "reason-import-unreadable"),
        (4, "reason-import-entry"),
        (6, "reason-import-damaged"),
    ]


def test_an_entry_that_is_too_large_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_entries, "MAX_ENTRY_CHARS", 1_000_000)
    good = json.dumps(chatgpt(("q", None, "user")))
    large = json.dumps([{"a": 'x"\\]' * 500_000}])
    for data in (f"[{large}, {good}]", f'{{"conversations": [{large}, {good}]}}'):
        result = read(data.encode())
        assert len(result.conversations) == 1
        assert reasons(result) == [(1, "reason-import-large")]


def test_entries_larger_than_a_window_are_read_whole() -> None:
    rng = random.Random(3)
    states = [
        chatgpt(("q", None, "user"), title="t" * rng.randrange(3), pad="é\\\"\n" * rng.randrange(90_000))
        for _ in range(20)
    ]  # fmt: skip
    for ascii_only in (True, False):
        data = json.dumps(states, ensure_ascii=ascii_only, indent=1).encode()
        assert len(read(data).conversations) == 20


def test_too_many_unreadable_entries_end_the_reading() -> None:
    started = time.monotonic()
    result = read(b"[" + as_json(chatgpt(("q", None, "user"))) + b",1" * 3_000_000 + b"]")
    assert len(result.problems) == conversation_import.MAX_PROBLEMS
    assert time.monotonic() - started < 10


def test_too_many_conversations_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_import, "MAX_CONVERSATIONS", 3)
    result = read(as_json([chatgpt(("q", None, "user"))] * 5))
    assert len(result.conversations) == 3
    assert reasons(result) == [(4, "reason-import-many")]


def test_rings_and_chains_without_end_are_read() -> None:
    ring = chatgpt(
        ("a", "b", "user"), ("b", "c", "assistant"), ("c", "a", "user"), ("s", "s", "user")
    )
    assert len(only([ring]).turns) == 3
    long = chatgpt(*((str(n), str(n - 1), ("user", "assistant")[n % 2]) for n in range(100_000)))
    state = only([long])
    assert len(state.path()) == 50_000
    own = [{"id": n, "parent": n - 1, "question": str(n)} for n in range(1, 20_001)]
    assert len(only([{"turns": own}]).path()) == 20_000
    ring_of_ours = [{"id": n, "parent": (n + 1) % 5, "question": str(n)} for n in range(5)]
    state = only([{"turns": ring_of_ours}])
    assert state.newest_below("") in state.turns
    assert len(state.path()) == 5


def test_branches_that_repeat_without_end_are_refused_and_others_come_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        message_tree.Budget, "__init__", lambda self: setattr(self, "left", 100_000)
    )
    chain = [("q", None, "user"), ("0", "q", "assistant")]
    for n in range(1, 3000):
        chain += [(str(n), str(n - 1), "assistant"), (f"u{n}", str(n), "user")]
    many = [("q" * 100, None, "user")] + [(str(n), "q" * 100, "assistant") for n in range(20)]
    result = read(as_json([chatgpt(*chain), chatgpt(*many)]))
    assert reasons(result) == [(1, "reason-import-branches")]
    assert len(result.conversations[0].turns) == 20


@pytest.mark.parametrize(
    "value", [None, 7, -1, 1e308, 10**400, True, "x", [], {}, [None], {"a": None}]
)
def test_any_value_anywhere_is_borne(value: object, caplog: pytest.LogCaptureFixture) -> None:
    for data in (CHATGPT, OPEN_WEBUI, as_json({"conversations": [OURS]})):
        for changed in changes(json.loads(data), value):
            with caplog.at_level(logging.ERROR):
                tried(as_json(changed))
    assert caplog.records == []


OURS: dict[str, Any] = {
    "id": "c", "title": "t", "title_by": "person", "pinned": True, "created_s": 1.5, "leaf": "b",
    "turns": [
        {"id": "a", "parent": "", "question": "q", "text": "a", "params": {"temperature": 1.0,
         "stop": ["x"], "max_tokens": 5}, "receipt": {"model": "m", "finish": "stop",
         "usage": {"prompt_tokens": 3}, "left_out": 1}, "error": {"kind": "StalledError",
         "values": {"seconds": 3}}, "created_s": 2},
        {"id": "b", "parent": "a", "question": "q", "continues": "a", "state": "running"},
    ],
}  # fmt: skip


def changes(value: Any, new: object) -> list[Any]:
    """The document with `new` in each place once."""
    found: list[Any] = []

    def walk(here: Any) -> None:
        keys = list(here) if isinstance(here, dict) else range(len(here))
        for key in keys:
            old, here[key] = here[key], new
            found.append(json.loads(json.dumps(value)))
            here[key] = old
            if isinstance(old, dict | list):
                walk(old)

    walk(value)
    return found


def tried(data: bytes) -> ImportResult | None:
    """Read the file and look at all that came in; None where it was refused with a sentence."""
    try:
        result = read(data)
    except LLMError as error:
        error.sentence(catalogue("zh"))  # raises where it lacks a value
        return None
    for state in result.conversations:
        assert state.path()
        assert state.variants()
        assert len(state.head.title) <= 200
        assert 0 < len(state.head.import_mark) <= 80
        for turn in state.turns.values():
            assert turn.state == "ended"
            assert turn.parent in state.turns or turn.parent == ""
            f"{turn.question}{turn.text}{turn.reasoning}{turn.system_prompt}{turn.receipt}".encode()
            assert isinstance(turn.created_s, float) or turn.created_s == 0
            assert 0 <= turn.created_s < 2.6e11
            turn.params.given()
            assert turn.error is None or str(turn.error)
    for problem in result.problems:
        for language in ("en", "zh"):
            assert problem.reason.sentence(catalogue(language))
    return result


def test_half_characters_and_nul_are_replaced() -> None:
    text = r'[{"title": "a\ud800", "mapping": {"q": {"message": {"author": {"role": "user"}, '
    text += r'"content": {"content_type": "text", "parts": ["\u0000\udc00 \ud83d\ude00"]}}}}}]'
    state = only(text.encode())
    assert (state.head.title, state.path()[0].question) == ("a\ufffd", "\ufffd\ufffd 😀")


def test_dates_of_any_kind_are_borne() -> None:
    tree = chatgpt(("q", None, "user"))
    for told, seconds in [
        (1717236000, 1717236000), (1717236000123, 1717236000.123), ("2024-06-01T10:00:00Z", 1717236000),
        (-5, 0), ("soon", 0), (10**18, 1e9), (10**400, 0), (None, 0),
    ]:  # fmt: skip
        tree["mapping"]["q"]["message"]["create_time"] = told
        assert only([tree]).path()[0].created_s == seconds
    data = as_json([tree]).replace(b'"create_time": null', b'"create_time": NaN')
    assert only(data).path()[0].created_s == 0
    assert b"NaN" in data


def test_a_text_that_is_too_long_is_cut_and_that_is_said() -> None:
    tree = chatgpt(("q", None, "user"))
    tree["mapping"]["q"]["message"]["content"]["parts"] = ["x" * 10_000_001]
    result = read(as_json([tree]))
    assert reasons(result) == [(1, "reason-import-cut")]
    assert len(result.conversations[0].path()[0].question) == 10_000_000


@pytest.mark.parametrize("seed", range(6))
def test_damaged_files_are_read_as_far_as_they_can_be(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(seed)
    ours = as_json({"format": "steady-chat", "version": 1, "conversations": [OURS, OURS]})
    sources = (CHATGPT, OPEN_WEBUI, ours, zipped(**{"conversations.json": CHATGPT, "b.json": ours}))
    bits = [
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b",",
        b":",
        b"null",
        b"1e999",
        b"\\ud800",
        b"\0",
        b"\xff",
        b"",
    ]
    with caplog.at_level(logging.ERROR):
        for _ in range(400):
            data = bytearray(rng.choice(sources))
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(data))
                data[at : at + rng.choice((0, 1, 1, 5, 50))] = rng.choice(bits)
            tried(bytes(data[: rng.choice((len(data), rng.randrange(len(data))))]))
    assert caplog.records == []


def test_memory_stays_in_proportion_to_the_file() -> None:
    conversation = chatgpt(*((f"{n} {'text ' * 200}", None, "user") for n in range(10)))
    data = as_json([conversation] * 1000)
    read(data[:200_000] + b"]")
    tracemalloc.start()
    result = read(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(result.conversations) == 1000
    assert peak < 2 * len(data)
