"""One local model after another: who is answered by which, what is in memory meanwhile."""

from __future__ import annotations

import gc
import json
import shutil
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file

import llm.local_backend
import llm.local_loader
import llm.local_source
from llm.errors import (
    LoadingStoppedError,
    ModelNotFoundError,
    NotAModelError,
    Reason,
    WeightsTooLargeError,
)
from llm.local_backend import LocalBackend, LocalOptions
from llm.types import NOT_BEGUN, BackendPhase, CancelToken, Delta, Finish, Notice
from llm.wheel_download import FetchStopped
from tests.local_answers import TIMEOUT_S, Gate, ask, begun, cut, model_of, read
from tests.tiny_gguf import write_tiny_gguf
from tests.tiny_model import make_tiny_model

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


@pytest.fixture(scope="module")
def kept_folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    where = tmp_path_factory.mktemp("two")
    return make_tiny_model(where / "First"), make_tiny_model(where / "Second")


@pytest.fixture
def folders(kept_folders: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """Two models, which a test may damage."""
    first, second = (shutil.copytree(f, tmp_path / f.name) for f in kept_folders)
    return first, second


@pytest.fixture
def backend(folders: tuple[Path, Path], tmp_path: Path) -> Iterator[LocalBackend]:
    made = LocalBackend(LocalOptions(tmp_path / "data", str(folders[0]), slots=4))
    yield made
    made.close()


def other(backend: LocalBackend, folder: Path, **options: Any) -> LocalOptions:
    return replace(backend.chosen, model=str(folder), **options)


def wait_for(backend: LocalBackend, *phases: BackendPhase) -> None:
    with backend._changed:
        reached = backend._changed.wait_for(
            lambda: backend._phase in phases and not backend._working, TIMEOUT_S
        )
    assert reached, backend.status()


def answered_by(backend: LocalBackend) -> str:
    notice, *_, finish = backend.stream(ask(max_tokens=2), CancelToken())
    assert isinstance(notice, Notice)
    assert isinstance(finish, Finish)
    assert finish.reason == "length"
    return notice.model


class Loads:
    """Counts loads, and looks whether the models of earlier ones are gone when one begins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.models: list[weakref.ref[Any]] = []
        self.names: list[str] = []
        self.held: list[str] = []
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self._held_name = ""
        self.failing: set[str] = set()
        load_model = llm.local_loader.load_model

        def watched(folder: Path, name: str, options: LocalOptions) -> Any:
            self.names.append(name)
            if any(model() is not None for model in self.models):
                self.held.append(name)
            if self._held_name in ("", name):
                self.reached.set()
                assert self.go_on.wait(TIMEOUT_S)
            if name in self.failing:
                raise NotAModelError(model=name, reason=Reason("reason-part-unreadable"))
            loaded = load_model(folder, name, options)
            self.models.append(weakref.ref(loaded.model))
            return loaded

        monkeypatch.setattr(llm.local_loader, "load_model", watched)

    def hold(self, name: str = "") -> None:
        """Hold the next load; of this one only, if named."""
        self._held_name = name
        self.reached.clear()
        self.go_on.clear()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    return Loads(monkeypatch)


def test_the_chosen_model_answers_and_the_old_one_is_gone_before_it_is_read(
    backend: LocalBackend, folders: tuple[Path, Path], loads: Loads
) -> None:
    assert answered_by(backend) == "First"
    backend.choose(other(backend, folders[1]))
    assert answered_by(backend) == "Second"
    assert backend.status().model == "Second"
    assert backend.holds == backend.chosen
    assert loads.names == ["First", "Second"]
    assert loads.held == []
    assert loads.models[0]() is None


def test_to_and_fro_twenty_times_takes_no_more_memory_than_once(
    tmp_path: Path, loads: Loads
) -> None:
    """With weights large enough to be seen among what Python itself takes: 100 MB each."""
    first = enlarged(make_tiny_model(tmp_path / "First"))
    second = shutil.copytree(first, tmp_path / "Second")
    backend = LocalBackend(LocalOptions(tmp_path / "data", str(first)))
    process = psutil.Process()
    assert answered_by(backend) == "First"
    loaded_bytes = process.memory_info().rss
    for _ in range(20):
        backend.choose(other(backend, second))
        assert answered_by(backend) == "Second"
        backend.choose(other(backend, first))
        assert answered_by(backend) == "First"
    assert process.memory_info().rss < 1.1 * loaded_bytes
    assert len(loads.names) == 41
    assert loads.held == []
    backend.close()


def test_giving_a_model_back_never_looks_at_the_libraries(
    backend: LocalBackend, folders: tuple[Path, Path], loads: Loads
) -> None:
    """Looking at all their objects would stop everybody's answers for half a second."""
    assert answered_by(backend) == "First"
    left_out: list[int] = []

    def watch(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            left_out.append(gc.get_freeze_count())

    gc.callbacks.append(watch)
    try:
        backend.choose(other(backend, folders[1]))
        assert answered_by(backend) == "Second"
        backend.choose(other(backend, folders[0]))
        assert answered_by(backend) == "First"
        backend.close()
    finally:
        gc.callbacks.remove(watch)
    assert len(left_out) >= 3
    assert min(left_out) > 100_000
    assert all(model() is None for model in loads.models)


def enlarged(folder: Path, vocabulary: int = 200_000) -> Path:
    """With an embedding of many rows that no token uses."""
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        rows = torch.zeros(vocabulary, config["hidden_size"])
        rows[: len(weights[name])] = weights[name]
        weights[name] = rows
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": vocabulary}))
    return folder


def test_running_answers_end_by_the_model_that_began_and_others_wait_for_the_new_one(
    backend: LocalBackend, folders: tuple[Path, Path], loads: Loads
) -> None:
    model_of(backend)
    running = [begun(backend, ask(f"Question {n}", max_tokens=200)) for n in range(3)]
    firsts = [next(items) for items in running]
    backend.choose(other(backend, folders[1]))
    status = backend.status()
    assert (status.phase, status.model, status.answering) == ("draining", "Second", 3)
    names: list[str] = []
    asked = threading.Thread(target=lambda: names.append(answered_by(backend)))
    asked.start()
    with backend._changed:
        assert backend._changed.wait_for(lambda: backend.status().waiting == 1, TIMEOUT_S)
    for first, items in zip(firsts, running, strict=True):
        assert isinstance(first, Delta)
        assert loads.names == ["First"]
        *_, finish = items
        assert isinstance(finish, Finish)
        assert finish.reason == "length"
        assert finish.usage.completion_tokens == 200
    asked.join(TIMEOUT_S)
    assert names == ["Second"]
    assert backend.status().waiting == 0
    assert loads.held == []


def test_running_answers_are_stopped_where_that_is_wished_and_keep_what_they_said(
    backend: LocalBackend, folders: tuple[Path, Path]
) -> None:
    model_of(backend)
    running = [begun(backend, ask(f"Question {n}", max_tokens=400)) for n in range(3)]
    firsts = [next(items) for items in running]
    backend.choose(other(backend, folders[1]), stop_answers=True)
    for first, items in zip(firsts, running, strict=True):
        *_, finish = items
        assert isinstance(first, Delta)
        assert isinstance(finish, Finish)
        assert finish.reason == "abort"
        assert finish.usage.completion_tokens is not None
        assert finish.usage.completion_tokens < 400
        assert finish.why == Reason("finish-model-changed", {"model": "Second"})
    assert answered_by(backend) == "Second"


def test_who_stops_an_answer_is_told_of_no_other_model_and_nothing_begins_without_one(
    backend: LocalBackend, loads: Loads
) -> None:
    loads.hold()
    cancel = CancelToken()
    ends: list[object] = []
    asked = threading.Thread(target=lambda: ends.extend(backend.stream(ask(), cancel)))
    asked.start()
    assert loads.reached.wait(TIMEOUT_S)
    cancel.cancel()
    asked.join(TIMEOUT_S)
    assert ends == [Finish("abort", why=NOT_BEGUN)]
    loads.go_on.set()
    model_of(backend)
    stop = CancelToken()
    items = begun(backend, ask(max_tokens=400), stop)
    next(items)
    stop.cancel()
    *_, finish = items
    assert isinstance(finish, Finish)
    assert (finish.reason, finish.why) == ("abort", None)


def test_those_who_let_answers_end_may_still_stop_them(
    backend: LocalBackend, folders: tuple[Path, Path]
) -> None:
    model_of(backend)
    items = begun(backend, ask(max_tokens=400))
    next(items)
    backend.choose(other(backend, folders[1]))
    assert backend.status().phase == "draining"
    backend.choose(backend.chosen, stop_answers=True)
    *_, finish = items
    assert isinstance(finish, Finish)
    assert finish.reason == "abort"
    assert answered_by(backend) == "Second"


def test_a_choice_taken_back_while_answers_run_loads_nothing(
    backend: LocalBackend, folders: tuple[Path, Path], loads: Loads
) -> None:
    model_of(backend)
    items = begun(backend, ask(max_tokens=20))
    next(items)
    backend.choose(other(backend, folders[1]))
    backend.cancel_loading()
    wait_for(backend, "ready")
    *_, finish = items
    assert isinstance(finish, Finish)
    assert finish.reason == "length"
    assert answered_by(backend) == "First"
    assert loads.names == ["First"]


def break_the_weights(folder: Path) -> None:
    cut(folder / "model.safetensors")


@pytest.mark.parametrize("damage", [break_the_weights, shutil.rmtree])
def test_a_model_that_cannot_be_loaded_gives_way_to_the_one_before(
    backend: LocalBackend,
    folders: tuple[Path, Path],
    loads: Loads,
    damage: Callable[[Path], None],
) -> None:
    model_of(backend)
    damage(folders[1])
    backend.choose(other(backend, folders[1]))
    assert answered_by(backend) == "First"
    status = backend.status()
    assert status.ready
    assert status.model == "First"
    assert status.notice is not None
    assert status.notice.message_id == "model-went-back"
    assert status.notice.values["back"] == "First"
    why = status.notice.values["why"]
    assert isinstance(why, Reason)
    assert why.values["model"] == "Second"
    assert loads.held == []


def take_the_template(folder: Path) -> None:
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        if (file := folder / name).is_file():
            told = json.loads(file.read_text()) if name.endswith("json") else None
            file.unlink()
            if told is not None:
                told.pop("chat_template", None)
                file.write_text(json.dumps(told))


def of_an_unknown_type(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "nobody-knows"}))


def without_a_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")


@pytest.mark.parametrize(
    "damage",
    [
        break_the_weights,
        shutil.rmtree,
        take_the_template,
        of_an_unknown_type,
        without_a_tokenizer,
    ],
)
def test_what_its_files_show_to_be_impossible_takes_the_model_from_nobody(
    backend: LocalBackend,
    folders: tuple[Path, Path],
    loads: Loads,
    damage: Callable[[Path], None],
) -> None:
    model = weakref.ref(model_of(backend))
    damage(folders[1])
    items = begun(backend, ask(max_tokens=50))
    next(items)
    backend.choose(other(backend, folders[1]), stop_answers=True)
    *_, finish = items
    assert isinstance(finish, Finish)
    assert finish.reason == "length"
    assert answered_by(backend) == "First"
    notice = backend.status().notice
    assert notice is not None
    assert "Second" in str(notice)
    assert loads.names == ["First"]
    assert model() is not None


def test_a_gguf_file_is_converted_while_the_model_before_still_answers(
    backend: LocalBackend, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    converting, go_on = threading.Event(), threading.Event()
    run_converter = llm.local_source.run_converter

    def held(*args: Any) -> None:
        converting.set()
        assert go_on.wait(TIMEOUT_S)
        run_converter(*args)

    monkeypatch.setattr(llm.local_source, "run_converter", held)
    model_of(backend)
    file = write_tiny_gguf(folders[1], folders[1].parent / "Tiny.gguf")
    backend.choose(other(backend, file))
    assert converting.wait(TIMEOUT_S)
    assert answered_by(backend) == "First"
    status = backend.status()
    assert (status.phase, status.model, status.meanwhile) == ("converting", "Tiny", "First")
    assert backend.slots == 4
    assert backend.window_tokens(ask()) is not None
    go_on.set()
    wait_for(backend, "ready")
    assert answered_by(backend) == "Tiny"
    assert backend.status().meanwhile == ""
    assert backend._steps == ("loading", "warming")  # nothing of it is to be converted again


def test_where_there_is_no_room_for_both_the_model_goes_before_the_other_is_converted(
    backend: LocalBackend, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm.local_source, "free_main_bytes", lambda: 10_000_000)
    holds: list[LocalOptions | None] = []
    run_converter = llm.local_source.run_converter

    def watched(*args: Any) -> None:
        holds.append(backend.holds)
        run_converter(*args)

    monkeypatch.setattr(llm.local_source, "run_converter", watched)
    model_of(backend)
    file = write_tiny_gguf(folders[1], folders[1].parent / "Tiny.gguf")
    backend.choose(other(backend, file))
    assert answered_by(backend) == "Tiny"
    assert holds == [None]


def test_cancelling_while_files_are_got_takes_the_model_from_nobody(
    backend: LocalBackend, folders: tuple[Path, Path], loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    converting = threading.Event()

    def never(source: Path, folder: Path, cancel: CancelToken, progress: object) -> None:
        converting.set()
        assert cancel.wait(TIMEOUT_S)
        raise FetchStopped

    monkeypatch.setattr(llm.local_source, "run_converter", never)
    model_of(backend)
    file = write_tiny_gguf(folders[1], folders[1].parent / "Tiny.gguf")
    backend.choose(other(backend, file))
    assert converting.wait(TIMEOUT_S)
    backend.cancel_loading()
    assert answered_by(backend) == "First"
    wait_for(backend, "ready")
    assert backend.status().model == "First"
    assert loads.names == ["First"]


def test_the_one_before_comes_back_after_two_bad_choices_in_a_row(
    backend: LocalBackend, folders: tuple[Path, Path], loads: Loads, tmp_path: Path
) -> None:
    third = shutil.copytree(folders[0], tmp_path / "Third")
    model_of(backend)
    loads.failing = {"Second", "Third"}
    loads.hold("First")
    backend.choose(other(backend, folders[1]))
    assert loads.reached.wait(TIMEOUT_S)  # on its way back
    backend.choose(other(backend, third))
    loads.go_on.set()
    assert answered_by(backend) == "First"
    notice = backend.status().notice
    assert notice is not None
    assert notice.values["back"] == "First"


@pytest.mark.parametrize("at", ["resolve", "drain"])
def test_whatever_is_raised_about_a_model_the_one_before_comes_back(
    backend: LocalBackend, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    model_of(backend)
    if at == "resolve":
        config = folders[1] / "config.json"
        config.write_text(
            config.read_text().rstrip()[:-1] + ', "x": ' + "[" * 5000 + "]" * 5000 + "}"
        )
    else:

        def broken(model: object) -> Any:
            if "Second" in str(model):
                raise RecursionError
            return ()

        monkeypatch.setattr(llm.local_backend, "steps", broken)
    backend.choose(other(backend, folders[1]))
    wait_for(backend, "ready")
    assert answered_by(backend) == "First"
    notice = backend.status().notice
    assert notice is not None
    assert notice.message_id == "model-went-back"


def test_a_config_nested_too_deeply_keeps_no_app_from_starting(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    (folders[0] / "config.json").write_text("[" * 5000)
    backend = LocalBackend(LocalOptions(tmp_path / "data", str(folders[0])))
    with pytest.raises(NotAModelError, match=r"config\.json can’t be read"):
        read(backend, ask())
    backend.close()


def test_a_chosen_model_that_has_gone_is_not_told_as_a_wrong_setting(
    backend: LocalBackend, folders: tuple[Path, Path]
) -> None:
    model_of(backend)
    shutil.rmtree(folders[1])
    backend.choose(other(backend, folders[1]))
    wait_for(backend, "ready")
    notice = backend.status().notice
    assert notice is not None
    why = notice.values["why"]
    assert isinstance(why, Reason)
    assert why.message_id == "error-model-gone"
    backend.unload()
    shutil.rmtree(folders[0])
    with pytest.raises(ModelNotFoundError, match="STEADY_CHAT_MODEL"):
        read(backend, ask())


def test_where_the_one_before_has_gone_too_the_failure_is_told_and_the_next_choice_works(
    backend: LocalBackend,
    folders: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    third = shutil.copytree(folders[0], tmp_path / "Third")
    model_of(backend)
    break_the_weights(folders[0])
    load = llm.local_loader._load

    def too_large(folder: Path, name: str, options: LocalOptions) -> Any:
        if name == "Second":
            raise MemoryError
        return load(folder, name, options)

    monkeypatch.setattr(llm.local_loader, "_load", too_large)
    backend.choose(other(backend, folders[1]))
    wait_for(backend, "failed")
    assert isinstance(backend.status().error, NotAModelError)
    with pytest.raises(NotAModelError):
        read(backend, ask())
    backend.choose(other(backend, third))
    assert answered_by(backend) == "Third"


def test_a_file_that_is_cut_while_it_is_loaded_harms_nobody_until_it_is_loaded_again(
    backend: LocalBackend, folders: tuple[Path, Path]
) -> None:
    model_of(backend)
    with (folders[0] / "model.safetensors").open("r+b") as file:
        file.truncate(1000)
    assert answered_by(backend) == "First"  # a mapped file would have ended this process
    backend.choose(other(backend, folders[1]))
    assert answered_by(backend) == "Second"
    backend.choose(other(backend, folders[0]))
    assert answered_by(backend) == "Second"
    notice = backend.status().notice
    assert notice is not None
    assert "First" in str(notice)
    assert str(folders[0].parent) not in str(notice)


def test_out_of_memory_while_loading_goes_back_too(
    backend: LocalBackend, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model_of(backend)
    load = llm.local_loader._load

    def too_large(folder: Path, name: str, options: LocalOptions) -> Any:
        loaded = load(folder, name, options)
        if name == "Second":
            raise MemoryError
        return loaded

    monkeypatch.setattr(llm.local_loader, "_load", too_large)
    backend.choose(other(backend, folders[1]))
    assert answered_by(backend) == "First"
    notice = backend.status().notice
    assert notice is not None
    why = notice.values["why"]
    assert isinstance(why, Reason)
    assert why.message_id == WeightsTooLargeError.message_id
    assert "conversation" not in str(notice)


def test_cancelling_a_first_load_says_so_and_the_next_question_loads_after_all(
    backend: LocalBackend, loads: Loads
) -> None:
    loads.hold()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            read(backend, ask())
        except LoadingStoppedError as error:
            errors.append(error)

    asked = threading.Thread(target=run)
    asked.start()
    assert loads.reached.wait(TIMEOUT_S)
    backend.cancel_loading()
    asked.join(TIMEOUT_S)
    assert len(errors) == 1
    assert isinstance(backend.status().error, LoadingStoppedError)
    loads.go_on.set()
    wait_for(backend, "failed")
    assert backend.holds is None
    assert answered_by(backend) == "First"
    assert loads.held == []


def test_cancelling_goes_back_to_the_model_before(
    backend: LocalBackend, folders: tuple[Path, Path], loads: Loads
) -> None:
    model_of(backend)
    loads.hold()
    backend.choose(other(backend, folders[1]))
    assert loads.reached.wait(TIMEOUT_S)
    backend.cancel_loading()
    assert backend.status().model == "First"
    loads.go_on.set()
    assert answered_by(backend) == "First"
    notice = backend.status().notice
    assert notice is not None
    assert "Second" in str(notice)
    assert loads.names == ["First", "Second", "First"]
    assert loads.held == []


def test_cancelling_ends_the_reading_of_weights_in_the_middle(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llm import local_progress

    backend = LocalBackend(LocalOptions(tmp_path / "data", str(folders[0])))
    watched = local_progress._watched
    came: list[object] = []

    def cancelled_in_between(items: Any, cancel: CancelToken, report: Any) -> Iterator[Any]:
        for item in watched(items, cancel, report):
            came.append(item)
            if len(came) == 3:
                assert backend.status().phase == "loading"
                assert backend.status().progress == pytest.approx(2 / len(items))
                backend.cancel_loading()
            yield item

    with monkeypatch.context() as patch:
        patch.setattr(local_progress, "_watched", cancelled_in_between)
        backend.prepare()
        wait_for(backend, "failed")
    assert len(came) == 3
    assert isinstance(backend.status().error, LoadingStoppedError)
    assert answered_by(backend) == "First"
    backend.close()


def test_the_last_of_several_choices_counts(
    backend: LocalBackend, folders: tuple[Path, Path], loads: Loads, tmp_path: Path
) -> None:
    third = shutil.copytree(folders[0], tmp_path / "Third")
    model_of(backend)
    loads.hold()
    backend.choose(other(backend, folders[1]))
    assert loads.reached.wait(TIMEOUT_S)
    backend.choose(other(backend, third))
    loads.go_on.set()
    assert answered_by(backend) == "Third"
    assert loads.held == []


def test_the_same_files_loaded_otherwise_are_another_model(
    backend: LocalBackend, folders: tuple[Path, Path]
) -> None:
    usual = threads_of_an_answer(backend)
    backend.choose(other(backend, folders[0], dtype="bfloat16", threads=1, name="Half"))
    assert answered_by(backend) == "Half"
    assert backend._loaded is not None
    assert backend._loaded.model.dtype == torch.bfloat16
    assert threads_of_an_answer(backend) == 1
    backend.choose(other(backend, folders[1], dtype="float32", threads=None, name=""))
    assert answered_by(backend) == "Second"
    assert threads_of_an_answer(backend) == usual


def threads_of_an_answer(backend: LocalBackend) -> int:
    seen: list[int] = []
    hook = model_of(backend).register_forward_pre_hook(
        lambda *_: seen.append(torch.get_num_threads())
    )
    read(backend, ask(max_tokens=1))
    hook.remove()
    return seen[0]


def test_a_model_nobody_asks_leaves_memory_and_the_next_question_brings_it_back(
    folders: tuple[Path, Path], tmp_path: Path, loads: Loads
) -> None:
    backend = LocalBackend(LocalOptions(tmp_path / "data", str(folders[0])), unload_after_s=0.05)
    for round_ in range(1, 4):
        assert answered_by(backend) == "First"
        wait_for(backend, "unloaded")
        assert backend.holds is None
        assert backend.status().settled
        assert len(loads.names) == round_
        assert loads.models[-1]() is None
    assert backend.window_tokens(ask()) is None
    backend.close()


def test_who_looks_at_the_model_as_it_leaves_keeps_nobody_waiting(
    backend: LocalBackend,
) -> None:
    assert answered_by(backend) == "First"
    with backend._changed:  # the loading thread has to wait until somebody has looked
        backend.unload()
        looking = backend.in_use()
        assert looking.__enter__() is None
    wait_for(backend, "unloaded")
    answers: list[str] = []
    reader = threading.Thread(target=lambda: answers.append(answered_by(backend)), daemon=True)
    reader.start()
    reader.join(TIMEOUT_S)
    assert answers == ["First"]
    looking.__exit__(None, None, None)


def test_a_model_is_not_unloaded_while_it_answers(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    backend = LocalBackend(LocalOptions(tmp_path / "data", str(folders[0])))
    gate = Gate(model_of(backend))
    got: list[object] = []
    reader = threading.Thread(
        target=lambda: got.extend(backend.stream(ask(max_tokens=3), CancelToken()))
    )
    reader.start()
    assert gate.reached.wait(TIMEOUT_S)
    backend.unload()
    assert backend.status().ready
    gate.open.set()
    reader.join(TIMEOUT_S)
    gate.hook.remove()
    assert isinstance(got[-1], Finish)
    del gate
    backend.unload()
    wait_for(backend, "unloaded")
    backend.close()


def test_closing_in_the_middle_of_a_switch_leaves_nothing(
    backend: LocalBackend, folders: tuple[Path, Path], loads: Loads
) -> None:
    model_of(backend)
    loads.hold()
    backend.choose(other(backend, folders[1]))
    assert loads.reached.wait(TIMEOUT_S)
    backend.close()
    loads.go_on.set()
    wait_for(backend, "idle")
    assert [model() for model in loads.models] == [None] * len(loads.models)


def test_what_works_with_the_model_is_closed_before_its_memory_is_given_back(
    backend: LocalBackend, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(
        llm.local_loader.LoadedModel, "close", lambda loaded: closed.append(loaded.name)
    )
    model_of(backend)
    backend.choose(other(backend, folders[1]))
    assert answered_by(backend) == "Second"
    assert closed == ["First"]


def test_a_path_with_nothing_there_has_steps_and_so_is_not_taken_for_a_server(
    tmp_path: Path,
) -> None:
    backend = LocalBackend(LocalOptions(tmp_path, str(tmp_path / "nowhere")))
    assert backend.status().steps == ("loading", "warming")
    backend.close()
