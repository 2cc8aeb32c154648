"""The backend that says what it is told."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from llm.catalogue import catalogue
from llm.errors import LLMError, OutOfMemoryError, ServerFaultError, SettingsError
from llm.script import Script, error_kinds
from llm.scripted_backend import SHORTEST_WAIT_S, ScriptedBackend
from llm.settings import Settings
from llm.types import CancelToken, Delta, Finish, GenerationRequest, Message, SamplingParams

WHOLE = "你好，世界！🙂 👨‍👩‍👧 é ไทย\n\n  end\n"


def ask(question: str = "hi", **params: object) -> GenerationRequest:
    return GenerationRequest((Message("user", question),), SamplingParams(**params))  # type: ignore[arg-type]


def answer(backend: ScriptedBackend, question: str = "hi", **params: object) -> tuple[str, Finish]:
    *deltas, finish = backend.stream(ask(question, **params), CancelToken())
    assert isinstance(finish, Finish)
    return "".join(item.text for item in deltas if isinstance(item, Delta)), finish


@pytest.mark.parametrize("chunk_chars", [0, 1, 7])
def test_it_goes_on_with_what_it_began(chunk_chars: int) -> None:
    script = Script("{question} " + WHOLE, reasoning="hm", chunk_chars=chunk_chars)
    backend = ScriptedBackend(script)
    whole, _ = answer(backend)
    for cut in range(4, len(whole) + 1):
        messages = (Message("user", "hi"), Message("assistant", whole[2:cut]))
        *deltas, finish = backend.stream(GenerationRequest(messages), CancelToken())
        said = [(item.kind, item.text) for item in deltas if isinstance(item, Delta)]
        assert "".join(text for _, text in said) == whole[cut:]
        assert {kind for kind, _ in said} <= {"text"}
        assert isinstance(finish, Finish)
        assert (finish.reason, finish.usage.completion_tokens) == ("stop", len(said))


class FakeTime:
    """The backend's clock: it moves only where the backend waits or a test says so."""

    def __init__(self) -> None:
        self.now_s = 1024.0
        self.on_wait: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now_s

    def event(self) -> threading.Event:
        event = threading.Event()

        def wait(timeout_s: float | None = None) -> bool:
            assert timeout_s is not None, "this clock can't wait for ever"
            self.on_wait()
            if not event.is_set():
                self.now_s += timeout_s
            return event.is_set()

        event.wait = wait  # type: ignore[method-assign]
        return event


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    threads = SimpleNamespace(Event=fake.event, RLock=threading.RLock)
    monkeypatch.setattr("llm.scripted_backend.time", fake)
    monkeypatch.setattr("llm.scripted_backend.threading", threads)
    return fake


@pytest.mark.parametrize("chunk_chars", [0, 1, 2, 3, 1000])
@pytest.mark.parametrize("text", [WHOLE, "", " ", "\n", "x", "   \n\n\t x  ", "```python\n"])
def test_the_pieces_are_the_text(text: str, chunk_chars: int) -> None:
    pieces = list(Script(text, chunk_chars=chunk_chars).pieces("?"))
    assert "".join(piece for _, piece in pieces) == text
    assert all(piece for _, piece in pieces)
    assert all(len(piece) <= (chunk_chars or 4) for _, piece in pieces)


def test_reasoning_comes_first_and_apart() -> None:
    backend = ScriptedBackend(Script("the answer", reasoning="let me think"))
    *deltas, _ = backend.stream(ask(), CancelToken())
    kinds = [item.kind for item in deltas if isinstance(item, Delta)]
    assert kinds == sorted(kinds)  # reasoning < text
    assert {"reasoning", "text"} == set(kinds)
    said = [item.text for item in deltas if isinstance(item, Delta) and item.kind == "text"]
    assert "".join(said) == "the answer"


def test_the_first_rule_that_fits_the_last_question_wins() -> None:
    rules = [("red", Script("R")), ("green", Script("G")), ("red green", Script("never"))]
    backend = ScriptedBackend(Script("default"), rules)
    assert answer(backend, "a red green one")[0] == "R"
    assert answer(backend, "green")[0] == "G"
    assert answer(backend, "blue")[0] == "default"
    history = (Message("user", "red"), Message("assistant", "R"), Message("user", "green"))
    first = next(backend.stream(GenerationRequest(history), CancelToken()))
    assert first == Delta("G")


def test_the_question_can_be_said_back_and_is_not_a_format() -> None:
    backend = ScriptedBackend(Script("You said “{question}”, not {other} or {}."))
    assert answer(backend, "{x}%s")[0] == "You said “{x}%s”, not {other} or {}."


def test_the_demo_answers_in_the_questions_language() -> None:
    backend = ScriptedBackend.from_settings(Settings())
    *deltas, finish = _quick_demo("What can you do?")
    english = "".join(item.text for item in deltas if isinstance(item, Delta))
    chinese = "".join(i.text for i in _quick_demo("你会做什么？") if isinstance(i, Delta))
    assert english.startswith("## A scripted answer")
    assert chinese.startswith("## 一段预先写好的回答")
    assert "What can you do?" in english
    for sign in ("```python", "| --- |", "$$", "\n> ", "\n1. ", "**"):
        assert sign in english
        assert sign in chinese
    assert isinstance(finish, Finish)
    assert finish.reason == "stop"
    assert backend.status().ready


def _quick_demo(question: str) -> list[Delta | Finish]:
    from dataclasses import replace

    from llm import scripted_backend

    script = scripted_backend.DEMO if question.isascii() else scripted_backend.DEMO_ZH
    chosen = ScriptedBackend()._choose(question)
    assert chosen == script
    quick = ScriptedBackend(replace(chosen, tokens_per_s=0, prefill_s=0))
    return list(quick.stream(ask(question, max_tokens=10_000), CancelToken()))


def test_max_tokens_cuts_and_says_so() -> None:
    backend = ScriptedBackend(Script("a b c d e f", chunk_chars=1))
    text, finish = answer(backend, max_tokens=3)
    assert text == "a b"
    assert finish.reason == "length"
    assert finish.usage.completion_tokens == 3
    text, finish = answer(backend, max_tokens=11)
    assert (text, finish.reason) == ("a b c d e f", "stop")


def test_usage_can_be_left_out() -> None:
    _, finish = answer(ScriptedBackend(Script("x", usage=False, finish_reason="length")))
    assert finish == Finish("length")


def test_the_pace_does_not_drift_with_what_the_reader_does(clock: FakeTime) -> None:
    backend = ScriptedBackend(Script("x" * 100, tokens_per_s=100, chunk_chars=1, prefill_s=0.1))
    came_s = []
    for item in backend.stream(ask(), CancelToken()):
        if isinstance(item, Delta):
            came_s.append(clock.now_s - 1024)
        clock.now_s += 0.006  # the reader's work, within a piece's 10 ms
    # Waiting a whole interval after each piece would take 1.7 s.
    assert came_s == pytest.approx([0.1 + n / 100 for n in range(100)])


def test_fast_tokens_come_a_few_together_and_hardly_late(clock: FakeTime) -> None:
    backend = ScriptedBackend(Script("x" * 400, tokens_per_s=400, chunk_chars=1))
    late_s = [
        clock.now_s - 1024 - n / 400
        for n, item in enumerate(backend.stream(ask(), CancelToken()))
        if isinstance(item, Delta)
    ]
    assert len(late_s) == 400
    assert -1e-9 <= min(late_s) <= max(late_s) <= SHORTEST_WAIT_S + 1e-9


def test_a_slow_reader_finds_what_is_due_at_once(clock: FakeTime) -> None:
    backend = ScriptedBackend(Script("x" * 99, tokens_per_s=50, chunk_chars=1))
    stream = backend.stream(ask(), CancelToken())
    next(stream)
    clock.now_s += 1.01
    back_at_s = clock.now_s
    for _ in range(50):
        next(stream)
    assert clock.now_s == back_at_s, "it waited for what was due long ago"
    next(stream)
    assert clock.now_s > back_at_s, "it did not come back to its pace"
    stream.close()


def test_400_tokens_a_second_cost_under_a_twentieth_of_a_core() -> None:
    backend = ScriptedBackend(Script("word " * 400, tokens_per_s=400))
    stream = backend.stream(ask(max_tokens=400), CancelToken())
    before_s = time.thread_time()
    pieces = sum(1 for _ in stream)
    assert pieces == 401
    assert (time.thread_time() - before_s) / (400 / 400) < 0.05


def test_a_stall_lasts_until_the_cancel() -> None:
    backend = ScriptedBackend(Script("abcdef", chunk_chars=1, stall_after=2))
    cancel = CancelToken()
    stream = backend.stream(ask(), cancel)
    assert [next(stream), next(stream)] == [Delta("a"), Delta("b")]
    rest: list[Delta | Finish] = []
    reader = threading.Thread(target=lambda: rest.extend(stream), daemon=True)
    reader.start()
    reader.join(0.2)
    assert reader.is_alive(), "it did not stall"
    cancel.cancel()
    reader.join(2)
    assert [type(item) for item in rest] == [Finish]
    assert isinstance(rest[0], Finish)
    assert rest[0].reason == "abort"
    assert rest[0].usage.completion_tokens == 2


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_scripted_failure_is_an_error_of_the_tree(after: int) -> None:
    script = Script("abc", chunk_chars=1, fail_after=after, fail_kind="out-of-memory")
    items: list[Delta | Finish] = []
    with pytest.raises(OutOfMemoryError) as caught:
        items.extend(ScriptedBackend(script).stream(ask(), CancelToken()))
    assert items == [Delta(char) for char in "abc"[:after]]
    assert "scripted" in str(caught.value)


def test_every_error_of_the_tree_can_be_scripted_and_said() -> None:
    assert error_kinds()["server-fault"] is ServerFaultError
    for kind in error_kinds():
        with pytest.raises(LLMError) as caught:
            list(
                ScriptedBackend(Script("a", fail_after=0, fail_kind=kind)).stream(
                    ask(), CancelToken()
                )
            )
        for language in ("en", "zh"):
            assert caught.value.sentence(catalogue(language))


def test_a_script_can_die_of_what_nobody_foresaw() -> None:
    backend = ScriptedBackend(Script("abc", chunk_chars=1, die_after=1))
    stream = backend.stream(ask(), CancelToken())
    next(stream)
    with pytest.raises(RuntimeError):
        next(stream)
    assert backend.running == 0


def test_a_mishap_beyond_the_end_does_not_happen() -> None:
    backend = ScriptedBackend(Script("abc", chunk_chars=1, stall_after=4, fail_after=9))
    assert answer(backend)[0] == "abc"


def test_getting_ready_takes_the_time_it_is_told(clock: FakeTime) -> None:
    backend = ScriptedBackend(Script("x"), ready_after_s=0.5)
    assert backend.status().phase == "idle"
    backend.prepare()
    clock.now_s += 0.125
    status = backend.status()
    assert status.phase == "loading"
    assert status.progress == 0.25
    assert answer(backend)[0] == "x"
    assert clock.now_s == 1024.5
    assert backend.status().phase == "ready"


def test_a_cancel_while_getting_ready_ends_at_once(clock: FakeTime) -> None:
    backend = ScriptedBackend(Script("x"), ready_after_s=60)
    cancel = CancelToken()
    clock.on_wait = cancel.cancel
    assert [type(item) for item in backend.stream(ask(), cancel)] == [Finish]
    assert clock.now_s == 1024


@pytest.mark.parametrize(
    "wrong",
    [
        {"tokens_per_s": -1},
        {"tokens_per_s": float("nan")},
        {"prefill_s": float("inf")},
        {"stall_after": -1},
        {"fail_kind": "no-such-error"},
    ],
)
def test_an_impossible_script_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Script("x", **wrong)  # type: ignore[arg-type]


def test_a_file_says_it_all(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text("# Long\n\n你好", encoding="utf-8")
    told = {
        "slots": 3,
        "ready_after_s": 0,
        "default": {"text_file": "long.md"},
        "rules": [
            {"when": "oom", "text": "some text", "fail_after": 1, "fail_kind": "out-of-memory"},
            {"when": "slow", "text": "{question}!", "tokens_per_s": 5, "finish_reason": "length"},
        ],
    }
    path = tmp_path / "scripts.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    backend = ScriptedBackend.from_settings(Settings(scripts_file=path))
    assert backend.slots == 3
    assert answer(backend)[0] == "# Long\n\n你好"
    assert answer(backend, "slow")[1].reason == "length"
    with pytest.raises(OutOfMemoryError):
        answer(backend, "oom")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("[", "scripts.json:1)"),
        ('{"default":\n {"text": "a",}}', "scripts.json:2)"),
        ("[]", "scripts.json)"),
        ('{"defualt": {}}', "defualt"),
        ('{"default": 3}', "default"),
        ('{"default": {"txt": "a"}}', "default.txt"),
        ('{"default": {"text": 3}}', "default.text"),
        ('{"default": {"tokens_per_s": -1}}', "default.tokens_per_s"),
        ('{"default": {"tokens_per_s": NaN}}', "default.tokens_per_s"),
        ('{"default": {"tokens_per_s": "quick"}}', "default.tokens_per_s"),
        ('{"default": {"finish_reason": "bored"}}', "default.finish_reason"),
        ('{"default": {"fail_kind": "x"}}', "default.fail_kind"),
        ('{"default": {"text_file": "missing.md"}}', "default.text_file"),
        ('{"default": {"text_file": "a", "text": "b"}}', "default.text_file"),
        ('{"rules": {}}', "rules"),
        ('{"rules": [{"text": "a"}]}', "rules[0].when"),
        ('{"rules": [{"when": "", "text": "a"}]}', "rules[0].when"),
        ('{"rules": [{"when": "a"}, 3]}', "rules[1]"),
        ('{"slots": 0}', "slots"),
        ('{"slots": true}', "slots"),
        ('{"ready_after_s": "soon"}', "ready_after_s"),
        ('{"ready_after_s": -1}', "ready_after_s"),
    ],
)
def test_a_wrong_file_is_told_by_its_place(tmp_path: Path, content: str, place: str) -> None:
    path = tmp_path / "scripts.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        ScriptedBackend.from_file(path)
    assert place in str(caught.value)
    assert "scripts_file" in str(caught.value)
    chinese = caught.value.sentence(catalogue("zh")).partition("有误：")[2]
    assert re.search("[\u4e00-\u9fff]", chinese), "the reason is in English"


def test_a_scripts_file_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    path = tmp_path / "scripts.json"
    path.write_bytes(b'{"default": {"text": "caf\xe9"}}')
    with pytest.raises(SettingsError) as caught:
        ScriptedBackend.from_file(path)
    assert "UTF-8" in str(caught.value)


def test_a_missing_file_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        ScriptedBackend.from_file(tmp_path / "nowhere.json")
    assert "nowhere.json" in str(caught.value)
