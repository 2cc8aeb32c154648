"""Presets: each person's own, with a name of their own, one of them the default."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from llm.catalogue import LANGUAGES, catalogue
from llm.conversation_database import ConversationDatabase
from llm.errors import PresetError, StoreError
from llm.preset_store import PresetStore
from llm.presets import MAX_NAME_CHARS, MAX_PRESETS, MAX_PROMPT_CHARS, Preset
from llm.types import SamplingParams

WARM = SamplingParams(temperature=1.25, top_p=None, max_tokens=77, seed=3, stop=("###", "\n用户:"))


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
def store(database: ConversationDatabase) -> PresetStore:
    return PresetStore(database)


def names(store: PresetStore, owner: str = "ann") -> list[str]:
    return [each.name for each in store.listed(owner)]


def test_what_was_saved_is_there_again_whole(store: PresetStore) -> None:
    saved = store.save("ann", Preset("好老师 😀", "Be kind.\n要有耐心。", WARM))
    assert saved.preset_id
    assert store.listed("ann") == [saved]
    assert store.listed("ann")[0].params == WARM


def test_they_are_listed_by_name_whatever_the_order_and_case(store: PresetStore) -> None:
    for name in ("b", "C", "a"):
        store.save("ann", Preset(name, "", WARM))
    assert names(store) == ["a", "b", "C"]


def test_two_people_never_see_or_change_each_others(store: PresetStore) -> None:
    anns = store.save("ann", Preset("mine", "Ann's secret", WARM, usual=True))
    assert store.listed("bob") == []
    bobs = store.save("bob", Preset("mine", "Bob's", WARM))
    store.make_usual("bob", anns.preset_id)
    store.delete("bob", anns.preset_id)
    assert store.listed("ann") == [anns]
    assert store.listed("bob") == [bobs], "another's can't be one's default either"


def test_anothers_preset_cant_be_overwritten_by_its_id(store: PresetStore) -> None:
    anns = store.save("ann", Preset("mine", "Ann's", WARM))
    with pytest.raises(StoreError):
        store.save("bob", replace(anns, system_prompt="Bob was here"))
    assert store.listed("ann") == [anns]
    assert store.listed("bob") == []


def test_a_name_is_there_once_a_person_whatever_its_case_and_blanks(store: PresetStore) -> None:
    store.save("ann", Preset("Kind teacher", "", WARM))
    with pytest.raises(PresetError) as refused:
        store.save("ann", Preset("  KIND \n teacher ", "", WARM))
    assert "KIND teacher" in str(refused.value)
    assert names(store) == ["Kind teacher"]


def test_a_preset_keeps_its_own_name_when_it_is_changed(store: PresetStore) -> None:
    saved = store.save("ann", Preset("one", "old", WARM))
    store.save("ann", replace(saved, system_prompt="new", params=SamplingParams()))
    (kept,) = store.listed("ann")
    assert (kept.name, kept.system_prompt, kept.params) == ("one", "new", SamplingParams())
    store.save("ann", replace(kept, name="two"))
    assert names(store) == ["two"]


def test_what_was_deleted_can_be_saved_again_default_and_all(store: PresetStore) -> None:
    saved = store.save("ann", Preset("one", "", WARM))
    store.make_usual("ann", saved.preset_id)
    (usual,) = store.listed("ann")
    store.delete("ann", usual.preset_id)
    assert store.listed("ann") == []
    store.save("ann", usual)
    assert store.listed("ann") == [usual]


def test_one_at_most_is_the_default(store: PresetStore) -> None:
    first = store.save("ann", Preset("a", "", WARM))
    second = store.save("ann", Preset("b", "", WARM))
    store.make_usual("ann", first.preset_id)
    store.make_usual("ann", second.preset_id)
    assert [each.usual for each in store.listed("ann")] == [False, True]
    store.save("ann", replace(second, system_prompt="changed"))
    assert [each.usual for each in store.listed("ann")] == [False, True], "a change keeps it"
    store.make_usual("ann", None)
    assert [each.usual for each in store.listed("ann")] == [False, False]


@pytest.mark.parametrize(
    "preset",
    [
        Preset(" \n ", "", WARM),
        Preset("\0", "", WARM),
        Preset("n" * (MAX_NAME_CHARS + 1), "", WARM),
        Preset("long", "p" * (MAX_PROMPT_CHARS + 1), WARM),
    ],
    ids=["blank", "nothing left", "name", "prompt"],
)
def test_what_cant_be_kept_is_refused_with_a_reason(store: PresetStore, preset: Preset) -> None:
    with pytest.raises(PresetError) as refused:
        store.save("ann", preset)
    for language in LANGUAGES:
        assert refused.value.sentence(catalogue(language))
    assert store.listed("ann") == []


def test_the_longest_that_is_taken_is_kept_whole(store: PresetStore) -> None:
    longest = Preset("名" * MAX_NAME_CHARS, "字" * MAX_PROMPT_CHARS, WARM)
    saved = store.save("ann", longest)
    assert store.listed("ann") == [saved]
    assert (saved.name, saved.system_prompt) == (longest.name, longest.system_prompt)


def test_nobody_keeps_more_than_a_list_can_show(store: PresetStore) -> None:
    for number in range(MAX_PRESETS):
        last = store.save("ann", Preset(f"{number}", "", WARM))
    with pytest.raises(PresetError):
        store.save("ann", Preset("one more", "", WARM))
    store.save("ann", replace(last, name="renamed"))
    store.save("bob", Preset("one more", "", WARM))
    assert len(store.listed("ann")) == MAX_PRESETS


def test_what_no_database_takes_is_left_out(store: PresetStore) -> None:
    saved = store.save("ann", Preset("a\0b\ud83d", "x\0y\udc00", replace(WARM, stop=("s\0",))))
    assert (saved.name, saved.system_prompt, saved.params.stop) == ("ab", "xy", ("s",))
    assert store.listed("ann") == [saved]


def test_damaged_parameters_are_the_usual_ones(
    store: PresetStore, database: ConversationDatabase
) -> None:
    store.save("ann", Preset("one", "kept", WARM))
    with database.writing() as connection:
        connection.execute(sa.text("UPDATE presets SET params = '{\"temperature\": '"))
    (kept,) = store.listed("ann")
    assert (kept.system_prompt, kept.params) == ("kept", SamplingParams())


def test_of_two_who_take_a_name_at_once_one_gets_it(database_url: str) -> None:
    """In two processes, as far as the database can tell."""
    databases = [ConversationDatabase(database_url, f"process {n}") for n in range(4)]
    stores = [PresetStore(database) for database in databases]
    stores[0].listed("ann")  # the tables are there
    together = threading.Barrier(len(stores))
    refused: list[Exception] = []

    def save(store: PresetStore) -> None:
        together.wait()
        try:
            store.save("ann", Preset("same", "", WARM))
        except (PresetError, StoreError) as error:
            refused.append(error)

    threads = [threading.Thread(target=save, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(stores[0]) == ["same"]
    assert len(refused) == len(stores) - 1
    for database in databases:
        database.close()


def test_a_database_that_cant_be_had_is_said(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    store = PresetStore(ConversationDatabase(f"sqlite:///{tmp_path / 'folder'}", "here"))
    with pytest.raises(StoreError):
        store.listed("ann")
    with pytest.raises(StoreError):
        store.save("ann", Preset("one", "", WARM))
