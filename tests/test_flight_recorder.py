"""An answer's timings, kept without its text, and the same answer's way gone again."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from llm import flight_recorder
from llm.arrivals import Arrivals
from llm.errors import SettingsError
from llm.flight_record import schedule_of
from llm.flight_recorder import MOST_FLIGHTS, FlightRecorder
from llm.job import GenerationJob
from llm.screen import Screen, ScreenReport
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from llm.types import GenerationRequest, Message, SamplingParams

SECRET = "nobody-may-read-this"
REQUEST = GenerationRequest((Message("user", SECRET),), SamplingParams(max_tokens=1000))


def answered(backend: ScriptedBackend) -> GenerationJob:
    """A job that is over."""
    job = GenerationJob("talk", "ann", backend, REQUEST, save=lambda snapshot: None)
    job.start()
    deadline_s = time.monotonic() + 30
    while not (snapshot := job.wait(-1, 0.05)).done:
        assert time.monotonic() < deadline_s
    assert snapshot.error is None
    return job


def stutter() -> Script:
    """Two quick runs of pieces with half a second between."""
    times = [0.05 * n for n in range(8)] + [0.85 + 0.05 * n for n in range(8)]
    return Script(SECRET, schedule=tuple((at_s, 3 + n % 5) for n, at_s in enumerate(times)))


def test_a_record_holds_times_and_lengths_and_no_text() -> None:
    recorder, screen = FlightRecorder(), Screen()
    screen.follow("turn")
    job = answered(ScriptedBackend(stutter()))
    screen.frame(120)
    screen.hear(ScreenReport(freeze_ms=99))
    recorder.answered("turn", job)
    recorder.seen("turn", screen.log("turn"))
    file = recorder.file("turn")
    assert file is not None
    assert SECRET.encode() not in file
    told = json.loads(file)
    assert (told["backend"], told["finish"]) == ("scripted", "stop")
    assert [chars for _, chars in told["pieces"]] == [chars for _, chars in stutter().schedule]
    ((frame_s, size),) = told["frames"]
    assert size == 120
    assert told["pieces"][-1][0] <= frame_s < told["pieces"][-1][0] + 5
    assert told["reports"][0][1]["freeze_ms"] == 99


def test_the_scripted_backend_goes_the_same_way_again(tmp_path: Path) -> None:
    recorder = FlightRecorder()
    first = answered(ScriptedBackend(stutter()))
    recorder.answered("turn", first)
    (tmp_path / "flight.json").write_bytes(recorder.file("turn") or b"")
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps({"default": {"flight_file": "flight.json"}}), encoding="utf-8")
    again = answered(ScriptedBackend.from_file(scripts))
    before, after = first.arrivals(), again.arrivals()
    assert after.chars == before.chars
    assert len(again.snapshot().text) == len(first.snapshot().text)
    # Never early, by as much as the first came late itself; how late, the machine decides.
    for was_s, is_s in zip(before.offsets_s, after.offsets_s, strict=True):
        assert is_s >= was_s - 0.001
    assert max(after.gaps_s()) == pytest.approx(max(before.gaps_s()), abs=0.3)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not json",
        "[]",
        "{}",
        '{"steady_chat_flight": 99, "pieces": []}',
        '{"steady_chat_flight": 1, "pieces": "many"}',
        '{"steady_chat_flight": 1, "pieces": [[0.1]]}',
        '{"steady_chat_flight": 1, "pieces": [["soon", 3]]}',
        '{"steady_chat_flight": 1, "pieces": [[0.1, 3.5]]}',
        '{"steady_chat_flight": 1, "pieces": [[-1, 3]]}',
        '{"steady_chat_flight": 1, "pieces": [[0.1, -3]]}',
        '{"steady_chat_flight": 1, "pieces": [[1e999, 3]]}',
        '{"steady_chat_flight": 1, "pieces": [[1e300, 3]]}',
        f'{{"steady_chat_flight": 1, "pieces": [[1{"0" * 400}, 3]]}}',
        '{"steady_chat_flight": 1, "pieces": [[0, 1000000000000]]}',
        '{"steady_chat_flight": 1, "pieces": [[true, 3]]}',
        '{"steady_chat_flight": 1, "pieces": [[0.1, false]]}',
    ],
)
def test_a_file_that_is_no_record_is_refused_with_its_place(tmp_path: Path, content: str) -> None:
    (tmp_path / "flight.json").write_text(content, encoding="utf-8")
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps({"default": {"flight_file": "flight.json"}}), encoding="utf-8")
    with pytest.raises(SettingsError, match="default"):
        ScriptedBackend.from_file(scripts)


def test_a_record_and_a_schedule_exclude_each_other(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts.json"
    told = {"default": {"flight_file": "flight.json", "schedule": [[0, 1]]}}
    scripts.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(SettingsError, match="flight_file"):
        ScriptedBackend.from_file(scripts)


def test_only_the_latest_are_kept() -> None:
    recorder, job = FlightRecorder(), answered(ScriptedBackend(Script("Yes.")))
    for number in range(MOST_FLIGHTS + 1):
        recorder.answered(f"turn{number}", job)
    assert not recorder.has("turn0")
    assert recorder.file("turn0") is None
    assert recorder.has(f"turn{MOST_FLIGHTS}")
    recorder.seen("turn0", Screen().log(""))
    assert not recorder.has("turn0")


def test_a_screens_word_that_comes_first_is_kept() -> None:
    recorder, screen = FlightRecorder(), Screen()
    screen.follow("turn")
    screen.frame(7)
    recorder.seen("turn", screen.log("turn"))
    assert not recorder.has("turn")
    recorder.answered("turn", answered(ScriptedBackend(Script("Yes."))))
    told = json.loads(recorder.file("turn") or b"")
    assert [size for _, size in told["frames"]] == [7]


def test_long_ones_make_room_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_recorder, "MOST_BYTES", 100)
    recorder, job = FlightRecorder(), answered(ScriptedBackend(Script("word " * 20)))
    for turn_id in ("one", "two"):
        recorder.answered(turn_id, job)
    assert not recorder.has("one")
    assert recorder.has("two"), "the latest is there however long it is"


def test_an_answer_that_never_began_has_a_record_too() -> None:
    job = GenerationJob(
        "talk", "ann", ScriptedBackend(Script("Yes.")), REQUEST, save=lambda snapshot: None
    )
    job.cancel()
    recorder = FlightRecorder()
    recorder.answered("turn", job)
    assert schedule_of((recorder.file("turn") or b"").decode()) == []


def test_a_schedule_repeats_a_text_that_is_too_short_and_cuts_one_that_is_too_long() -> None:
    said = [piece for _, piece in Script("abc", schedule=((0, 2), (0, 5), (0, 0))).pieces("")]
    assert said == ["ab", "cabca", ""]
    assert not Arrivals().gaps_s()
