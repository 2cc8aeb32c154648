"""All of a person's conversations at once: out, in again without doubles, and for good away."""

from __future__ import annotations

import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from llm import conversation_archive
from llm.conversation_archive import ConversationArchive, Imported
from llm.conversation_database import ConversationDatabase
from llm.conversation_files import json_file, markdown_file
from llm.conversation_import import MAX_IMPORT_BYTES, read
from llm.conversation_tables import conversations, turns
from llm.conversation_tree import (
    Conversation,
    ConversationKey,
    ConversationState,
    Receipt,
    Turn,
    bring_back,
    clear,
    delete_turns,
    new_id,
    show,
)
from llm.conversations import ConversationStore
from llm.daily_purge import DailyPurge
from llm.errors import ImportFileError, StoreError
from llm.import_run import ImportFile, ImportRun
from llm.types import Finish, SamplingParams, Usage

LIMIT_S = 60
NOW_S = 2_000_000_000.0
DAY_S = 86_400.0


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'test.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def database(database_url: str) -> Iterator[ConversationDatabase]:
    made = ConversationDatabase(database_url, "here")
    yield made
    made.close()


@pytest.fixture
def archive(database: ConversationDatabase) -> ConversationArchive:
    return ConversationArchive(database, pause=lambda seconds: None)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[ConversationArchive]:
    """An empty database besides."""
    made = ConversationDatabase(f"sqlite:///{tmp_path / 'other.db'}", "there")
    yield ConversationArchive(made, pause=lambda seconds: None)
    made.close()


def a_turn(question: str, parent: str = "", **values: object) -> Turn:
    turn = Turn(
        turn_id=uuid4().hex,
        question=question,
        backend="vllm/gpu",
        params=SamplingParams(temperature=0.5, stop=("###",)),
        system_prompt="Be kind.",
        model="model",
        state="ended",
        text=f"An answer to {question} 回答",
        reasoning="Let me think.",
        receipt=Receipt("model", Finish("stop", Usage(3, 4)), ttft_s=0.5),
        parent=parent,
        created_s=NOW_S - 400 * DAY_S,
    )
    return replace(turn, **values)  # type: ignore[arg-type]


def a_conversation(title: str, *, mark: str = "", branches: int = 2) -> ConversationState:
    """A first question with several answers below it, the first of which is shown."""
    first = a_turn(f"{title}?")
    below = [a_turn(f"{title} {n}?", first.turn_id) for n in range(branches)]
    head = Conversation(
        ConversationKey("", new_id()),
        title=title,
        pinned=True,
        created_s=NOW_S - 400 * DAY_S,
        updated_s=NOW_S - 300 * DAY_S,
        leaf=below[0].turn_id if below else first.turn_id,
        import_mark=mark,
    )
    return ConversationState(head, {turn.turn_id: turn for turn in (first, *below)})


def begun(store: ConversationStore, owner: str, state: ConversationState) -> ConversationKey:
    """The conversation as if it had been made here."""
    key = ConversationKey(owner, state.head.key.conversation_id)
    head = replace(state.head, key=key)
    store.begin(key, lambda before: ConversationState(head, state.turns))
    return key


@pytest.fixture
def store(database: ConversationDatabase) -> ConversationStore:
    return ConversationStore(database)


def exported(archive: ConversationArchive, owner: str = "ann") -> bytes:
    with json_file(archive, owner) as file:
        return file.read()


def told(archive: ConversationArchive, owner: str = "ann") -> list[object]:
    """What an export says, but for ids, which are new in each database."""

    def without_ids(entry: dict[str, object]) -> object:
        names = {turn["id"]: n for n, turn in enumerate(entry["turns"])}  # type: ignore[arg-type, index, var-annotated]
        names[""] = -1
        kept = {name: entry[name] for name in ("title", "title_by", "pinned", "updated_s")}
        kept["leaf"] = names[entry["leaf"]]
        kept["turns"] = [
            {
                **{name: value for name, value in turn.items() if name not in ("id", "backend")},
                "parent": names[turn["parent"]],
            }
            for turn in entry["turns"]  # type: ignore[attr-defined]
        ]
        return kept

    return [without_ids(entry) for entry in json.loads(exported(archive, owner))["conversations"]]


# -- in --


def test_importing_twice_makes_no_doubles(archive: ConversationArchive) -> None:
    data = json.dumps(chatgpt("a", "b")).encode()
    assert archive.import_all("ann", read(data).conversations) == Imported(added=2)
    assert archive.import_all("ann", read(data).conversations) == Imported(known=2)
    assert archive.count("ann") == 2


def test_the_same_twice_in_one_file_comes_in_once(archive: ConversationArchive) -> None:
    states = [a_conversation("same", mark="chatgpt:1"), a_conversation("same", mark="chatgpt:1")]
    assert archive.import_all("ann", states) == Imported(added=1, known=1)


def test_anothers_import_is_unaffected(archive: ConversationArchive) -> None:
    data = json.dumps(chatgpt("a")).encode()
    assert archive.import_all("ann", read(data).conversations) == Imported(added=1)
    assert archive.import_all("bob", read(data).conversations) == Imported(added=1)
    assert archive.count("ann") == archive.count("bob") == 1
    assert exported(archive, "carol") == exported(archive, "nobody")


def test_ones_own_export_is_known(archive: ConversationArchive, store: ConversationStore) -> None:
    begun(store, "ann", a_conversation("made here"))
    archive.import_all("ann", [a_conversation("came in", mark="chatgpt:1")])
    again = read(exported(archive)).conversations
    assert archive.import_all("ann", again) == Imported(known=2)
    assert archive.import_all("bob", read(exported(archive)).conversations) == Imported(added=2)


def test_what_was_deleted_comes_back_as_it_was(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    own = begun(store, "ann", a_conversation("made here"))
    archive.import_all("ann", [a_conversation("came in", mark="chatgpt:1")])
    data, before = exported(archive), told(archive)
    for head in store.listed("ann", 10):
        deleted_at(store, head.key, 1.0)
    assert store.state(own) is None
    assert archive.import_all("ann", read(data).conversations) == Imported(restored=2)
    assert told(archive) == before
    state = store.state(own)
    assert state is not None, "who has it open sees it too"
    assert state.head.deleted_s is None


def test_a_second_copy_that_is_there_keeps_a_deleted_one_deleted(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    own = begun(store, "ann", a_conversation("made here"))
    data = exported(archive)
    archive.import_all("bob", read(data).conversations)
    deleted_at(store, own, 1.0)
    with archive._database.writing() as connection:  # as an earlier version may have left it
        connection.execute(
            sa.update(conversations).where(conversations.c.owner == "bob").values(owner="ann")
        )
    assert archive.import_all("ann", read(data).conversations) == Imported(known=1)
    assert archive.count("ann") == 1


def test_all_out_and_into_an_empty_database_is_the_same(
    archive: ConversationArchive, store: ConversationStore, other: ConversationArchive
) -> None:
    for number in range(3):
        begun(store, "ann", a_conversation(f"对话 {number}", branches=number))
    archive.import_all("ann", [a_conversation("came in", mark="open-webui:1")])
    result = read(exported(archive))
    assert result.problems == []
    assert other.import_all("zoe", result.conversations) == Imported(added=4)
    assert told(other, "zoe") == told(archive)
    assert len(told(archive)) == 4


def test_more_than_one_transaction_takes_comes_in_whole(
    archive: ConversationArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_archive, "BATCH", 10)
    states = [a_conversation(f"{n}", mark=f"chatgpt:{n}") for n in range(25)]
    steps = list(archive.import_some("ann", states))
    assert [(step.added, taken) for step, taken in steps] == [(10, 10), (10, 10), (5, 5)]
    assert [state.head.title for state in archive.export_all("ann")] == [str(n) for n in range(25)]


def test_long_texts_make_shorter_transactions(archive: ConversationArchive) -> None:
    text = "x" * conversation_archive.BATCH_CHARS
    states = [
        replace(state, turns={key: replace(turn, text=text) for key, turn in state.turns.items()})
        for state in (a_conversation(f"{n}", mark=f"chatgpt:{n}", branches=0) for n in range(3))
    ]
    assert [taken for _, taken in archive.import_some("ann", states)] == [1, 1, 1]


def test_what_came_in_before_an_import_was_broken_off_is_kept(
    archive: ConversationArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_archive, "BATCH", 10)
    states = [a_conversation(f"{n}", mark=f"chatgpt:{n}") for n in range(25)]
    steps = archive.import_some("ann", states)
    next(steps)
    steps.close()
    assert archive.count("ann") == 10
    assert archive.import_all("ann", states) == Imported(added=15, known=10)


def test_two_who_import_the_same_at_once_make_no_doubles(database_url: str) -> None:
    databases = [ConversationDatabase(database_url, f"process {n}") for n in range(2)]
    archives = [ConversationArchive(each, pause=lambda seconds: None) for each in databases]
    archives[0].count("ann")  # the tables are there
    data = json.dumps(chatgpt(*(f"{n}" for n in range(30)))).encode()
    together = threading.Barrier(2)
    totals: list[Imported] = []

    def take_in(archive: ConversationArchive) -> None:
        states = read(data).conversations
        together.wait()
        totals.append(archive.import_all("ann", states))

    threads = [threading.Thread(target=take_in, args=(each,)) for each in archives]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals[0] + totals[1] == Imported(added=30, known=30)
    assert archives[0].count("ann") == 30
    for database in databases:
        database.close()


def test_what_came_in_is_found_by_its_words(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    archive.import_all("ann", [a_conversation("zebra", mark="chatgpt:1")])
    assert [hit.head.title for hit in store.search("ann", "answer", 5)] == ["zebra"]
    assert store.search("bob", "answer", 5) == []


# -- out --


def test_deleted_conversations_and_anothers_stay_out(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    key = begun(store, "ann", a_conversation("gone"))
    begun(store, "ann", a_conversation("kept"))
    begun(store, "bob", a_conversation("bob's"))
    deleted_at(store, key, 1.0)
    assert [entry["title"] for entry in told(archive)] == ["kept"]  # type: ignore[index]
    assert archive.count("ann") == 1


def test_an_export_reads_one_conversation_at_a_time(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    keys = [begun(store, "ann", a_conversation(f"{n}")) for n in range(3)]
    states = archive.export_all("ann")
    assert next(states).head.title == "0"
    store.change(keys[2], clear(NOW_S))
    assert [len(state.live()) for state in states] == [3, 0], "nothing was read before its turn"


def test_the_zip_has_a_readable_file_for_each(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    for _ in range(2):
        begun(store, "ann", a_conversation("如何做饭？"))
    with (
        markdown_file(archive, "ann", "zh") as file,
        zipfile.ZipFile(io.BytesIO(file.read())) as made,
    ):
        assert made.testzip() is None
        assert sorted(made.namelist()) == ["如何做饭？ (2).md", "如何做饭？.md"]
        assert "An answer to 如何做饭？ 0? 回答" in made.read("如何做饭？.md").decode()


# -- away --


def deleted_at(store: ConversationStore, key: ConversationKey, moment_s: float) -> None:
    store.change(key, lambda state: replace(state, head=replace(state.head, deleted_s=moment_s)))


def rows(archive: ConversationArchive) -> tuple[int, int]:
    with archive._database.reading() as connection:
        return tuple(  # type: ignore[return-value]
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (conversations, turns)
        )


def test_what_was_deleted_long_ago_goes_for_good_and_nothing_else(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    old, young, kept = (
        begun(store, "ann", a_conversation(name)) for name in ("old", "young", "kept")
    )
    bobs = begun(store, "bob", a_conversation("bob's old"))
    deleted_at(store, old, NOW_S - 31 * DAY_S)
    deleted_at(store, bobs, NOW_S - 31 * DAY_S)
    deleted_at(store, young, NOW_S - 29 * DAY_S)
    assert archive.purge(NOW_S - 30 * DAY_S) == 2
    assert rows(archive) == (2, 6)
    assert [head.title for head in archive.deleted("ann", 9)] == ["young"]
    assert archive.deleted("bob", 9) == []
    assert store.state(kept) is not None
    assert [hit.head.title for hit in store.search("ann", "answer", 5)] == ["kept"]
    assert archive.purge(NOW_S - 30 * DAY_S) == 0


def test_words_of_what_went_for_good_are_nowhere_any_more(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    key = begun(store, "ann", a_conversation("secret"))
    deleted_at(store, key, 1.0)
    archive.purge(NOW_S)
    # The next one may get the same rows.
    begun(store, "ann", a_conversation("harmless"))
    assert store.search("ann", "secret", 5) == []
    assert [hit.head.title for hit in store.search("ann", "harmless", 5)] == ["harmless"]


def test_more_deleted_ones_than_one_transaction_takes_go_too(
    archive: ConversationArchive, store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_archive, "BATCH", 3)
    for number in range(7):
        deleted_at(store, begun(store, "ann", a_conversation(f"{number}")), 1.0)
    assert archive.purge(NOW_S) == 7
    assert rows(archive) == (0, 0)


def test_turns_that_followed_a_purged_one_are_shown_as_before(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    first = a_turn("first")
    second = a_turn("second", first.turn_id)
    third = a_turn("third", second.turn_id)
    fourth = a_turn("fourth", third.turn_id)
    all_turns = {turn.turn_id: turn for turn in (first, second, third, fourth)}
    head = Conversation(ConversationKey("", new_id()), title="t", leaf=fourth.turn_id)
    key = begun(store, "ann", ConversationState(head, all_turns))
    store.change(key, delete_turns([second.turn_id, third.turn_id], NOW_S - 40 * DAY_S))
    store.change(key, delete_turns([first.turn_id], NOW_S))
    assert archive.purge(NOW_S - 30 * DAY_S) == 2
    state = store.state(key)
    assert state is not None
    assert [turn.question for turn in state.path()] == ["fourth"]
    assert state.turns[fourth.turn_id].parent == first.turn_id
    state = store.change(key, bring_back(NOW_S))
    assert [turn.question for turn in state.path()] == ["first", "fourth"]


def test_a_purged_last_turn_leaves_the_one_before_it_the_last(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    key = begun(store, "ann", a_conversation("t", branches=1))
    state = store.state(key)
    assert state is not None
    store.change(key, delete_turns([state.head.leaf], 1.0))
    archive.purge(NOW_S)
    state = store.state(key)
    assert state is not None
    assert [turn.question for turn in state.path()] == ["t?"]
    assert state.head.leaf == next(iter(state.turns))


def test_a_change_made_from_before_a_purge_is_made_anew(database_url: str) -> None:
    """By another process, which knows the conversation as it was."""
    ours, theirs = (ConversationDatabase(database_url, name) for name in ("a", "b"))
    store, archive = ConversationStore(theirs), ConversationArchive(ours, pause=lambda s: None)
    key = begun(store, "ann", a_conversation("t"))
    state = store.state(key)
    assert state is not None
    gone = next(reversed(state.turns))
    store.change(key, delete_turns([gone], 1.0))
    assert archive.purge(NOW_S) == 1
    state = store.change(key, show(state.head.leaf))
    assert gone not in state.turns
    for database in (ours, theirs):
        database.close()


def test_only_ones_own_deleted_one_can_be_deleted_for_good(
    archive: ConversationArchive, store: ConversationStore
) -> None:
    key = begun(store, "ann", a_conversation("t"))
    archive.delete_for_good(key)
    assert rows(archive) == (1, 3), "it isn't deleted"
    deleted_at(store, key, 1.0)
    archive.delete_for_good(replace(key, owner="bob"))
    assert rows(archive) == (1, 3)
    archive.delete_for_good(key)
    assert rows(archive) == (0, 0)
    assert store.state(key) is None
    archive.delete_for_good(key)


def test_it_is_purged_at_the_start_and_a_day_later(tmp_path: Path) -> None:
    asked: list[float] = []
    seen = threading.Event()

    class Noting(ConversationArchive):
        def purge(self, before_s: float) -> int:
            asked.append(before_s)
            seen.set()
            return 0

    made = Noting(ConversationDatabase(f"sqlite:///{tmp_path / 'a.db'}", "here"))
    purge = DailyPurge(lambda: made, 30 * DAY_S, clock=lambda: NOW_S)
    assert seen.wait(LIMIT_S)
    purge.close()
    purge._thread.join(LIMIT_S)
    assert not purge._thread.is_alive(), "the app isn't held up by a day's wait"
    assert asked == [NOW_S - 30 * DAY_S]


# -- a whole import --


def chatgpt(*ids: str) -> list[dict[str, object]]:
    """An export of ChatGPT's with these conversations."""

    def message(role: str, text: str) -> dict[str, object]:
        return {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}}

    return [
        {
            "id": each,
            "conversation_id": each,
            "title": f"Title {each}",
            "create_time": NOW_S - DAY_S,
            "update_time": NOW_S,
            "current_node": "n2",
            "mapping": {
                "n1": {
                    "id": "n1",
                    "parent": None,
                    "children": ["n2"],
                    "message": message("user", f"{each}?"),
                },
                "n2": {
                    "id": "n2",
                    "parent": "n1",
                    "children": [],
                    "message": message("assistant", "yes"),
                },
            },
        }
        for each in ids
    ]


def imported(archive: ConversationArchive, *files: tuple[str, bytes]) -> ImportRun:
    run = ImportRun(
        archive, "ann", [ImportFile(name, lambda data=data: data) for name, data in files]
    )  # type: ignore[misc]
    run.start()
    assert run.wait(LIMIT_S)
    return run


def test_each_file_is_reported_and_one_that_is_none_stops_no_other(
    archive: ConversationArchive,
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        made.writestr("conversations.json", json.dumps(chatgpt("b", "c")))
    run = imported(
        archive,
        ("导出.json", json.dumps(chatgpt("a")).encode()),
        ("photo.json", b"\x89PNG"),
        ("export.zip", packed.getvalue()),
    )
    progress = run.progress()
    assert (progress.done, progress.share) == (True, 1.0)
    first, second, third = progress.files
    assert (first.name, first.imported) == ("导出.json", Imported(added=1))
    assert isinstance(second.error, ImportFileError)
    assert third.imported == Imported(added=2)
    assert archive.count("ann") == 3


def test_damaged_entries_are_named_and_the_others_come_in(archive: ConversationArchive) -> None:
    entries: list[object] = [*chatgpt("a"), {"mapping": 7, "title": "bad"}, 5, *chatgpt("b")]
    (report,) = imported(archive, ("x.json", json.dumps(entries).encode())).progress().files
    assert report.imported == Imported(added=2)
    assert [(problem.row, problem.left_out) for problem in report.problems] == [
        (2, True),
        (3, True),
    ]
    assert report.problems[0].title == "bad"


def test_a_file_cut_short_brings_what_stands_before_the_cut(archive: ConversationArchive) -> None:
    data = json.dumps(chatgpt("a", "b", "c")).encode()
    (report,) = imported(archive, ("x.json", data[: len(data) - 40])).progress().files
    assert report.imported == Imported(added=2)
    assert report.problems
    (report,) = imported(archive, ("x.json", data)).progress().files
    assert report.imported == Imported(added=1, known=2)


def test_imports_take_turns_and_one_that_waits_says_so(archive: ConversationArchive) -> None:
    reading, go_on = threading.Event(), threading.Event()
    read: list[str] = []

    def slow() -> bytes:
        read.append("ann")
        reading.set()
        assert go_on.wait(LIMIT_S)
        raise OSError("a fault doesn't keep the others waiting")

    def quick() -> bytes:
        read.append("bob")
        return json.dumps(chatgpt("b")).encode()

    first = ImportRun(archive, "ann", [ImportFile("a.json", slow), ImportFile("a2.json", slow)])
    second = ImportRun(archive, "bob", [ImportFile("b.json", quick)])
    first.start()
    assert reading.wait(LIMIT_S)
    assert not first.progress().waiting
    second.start()
    deadline_s = time.monotonic() + LIMIT_S
    while not (progress := second.progress()).waiting and time.monotonic() < deadline_s:
        second.wait(0.01)
    assert (progress.waiting, [each.name for each in progress.files]) == (True, ["b.json"])
    assert read == ["ann"]
    go_on.set()
    assert first.wait(LIMIT_S)
    assert second.wait(LIMIT_S)
    assert read == ["ann", "bob", "ann"], "one after the other, a file each"
    assert not second.progress().waiting
    assert archive.count("bob") == 1


def test_a_database_that_goes_away_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    archive = ConversationArchive(ConversationDatabase(f"sqlite:///{tmp_path / 'folder'}", "here"))
    (report,) = imported(archive, ("x.json", json.dumps(chatgpt("a")).encode())).progress().files
    assert isinstance(report.error, StoreError)
    assert report.imported == Imported()


def test_what_can_be_uploaded_is_what_can_be_imported() -> None:
    text = (Path(__file__).parents[1] / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    (line,) = [each for each in text.splitlines() if each.startswith("maxUploadSize")]
    mib = int(line.partition("=")[2])
    assert MAX_IMPORT_BYTES <= mib * 2**20 < MAX_IMPORT_BYTES + 2**20
