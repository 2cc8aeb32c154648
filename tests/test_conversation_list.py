"""The sidebar's list of conversations, by Streamlit's AppTest."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from llm.conversation_access import SearchHit
from llm.conversation_tree import Conversation, ConversationKey, Receipt, Turn, add_turn
from llm.literal_markdown import literal
from llm.types import Finish, SamplingParams
from ui import conversation_list, resources

ROOT = Path(__file__).parents[1]
DAY_S = 86_400.0


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps({"default": {"text": "You asked: {question}"}}), encoding="utf-8")
    monkeypatch.setenv("STEADY_CHAT_BACKENDS", "scripted")
    monkeypatch.setenv("STEADY_CHAT_SCRIPTS_FILE", str(scripts))
    monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("STEADY_CHAT_DATABASE_URL", f"sqlite:///{tmp_path / 'kept.sqlite3'}")
    st.cache_resource.clear()
    yield
    resources.chat().close()
    st.cache_resource.clear()


def page() -> AppTest:
    return AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=60)


def keep(
    question: str, answer: str = "Yes.", ago_s: float = 0.0, params: SamplingParams | None = None
) -> ConversationKey:
    """A conversation that was had some time ago."""
    key = ConversationKey("local", uuid.uuid4().hex)
    turn = Turn(
        uuid.uuid4().hex,
        question,
        "scripted",
        params or SamplingParams(),
        text=answer,
        state="ended",
        created_s=time.time() - ago_s,
        receipt=Receipt("scripted", Finish("stop")),
        system_prompt=f"About {question}",
    )
    resources.chat().store.begin(key, add_turn(turn))
    return key


def titles(app: AppTest) -> list[str]:
    return [b.label for b in app.sidebar.button if str(b.key).startswith("open-")]


def captions(app: AppTest) -> list[str]:
    return [caption.value for caption in app.sidebar.caption]


def open_(app: AppTest, key: ConversationKey) -> AppTest:
    return app.button(key=f"open-{key.conversation_id}").click().run()


def act(app: AppTest, key: ConversationKey, action: str) -> AppTest:
    """Choose from a conversation's menu, as the browser says it."""
    from streamlit.proto.WidgetStates_pb2 import WidgetState

    name = f"menu-{key.conversation_id}"
    (menu,) = [e for e in app.get("menu_button") if e.proto.id.endswith(name)]
    chosen = WidgetState(id=menu.proto.id)
    chosen.string_trigger_value.data = action
    states = app._tree.get_widget_states()
    states.widgets.append(chosen)
    app._tree = app._run(states)._tree
    assert not app.exception
    return app


def shown(app: AppTest) -> str:
    key = app.session_state["conversation"]
    assert isinstance(key, ConversationKey)
    return key.conversation_id


def head(key: ConversationKey) -> Conversation:
    state = resources.chat().state(key)
    assert state is not None
    return state.head


def test_the_list_is_by_days_in_both_languages() -> None:
    keep("today")
    keep("before", ago_s=DAY_S)
    resources.chat().pin(keep("kept at the top", ago_s=400 * DAY_S), True)
    app = page().run()
    assert not app.exception
    assert titles(app) == ["kept at the top", "today", "before"]
    assert captions(app)[:3] == ["Pinned", "Today", "Yesterday"]
    app.radio(key="language").set_value("zh").run()
    assert captions(app)[:3] == ["已置顶", "今天", "昨天"]


def test_an_empty_list_says_so() -> None:
    app = page().run()
    assert "Nothing asked yet." in captions(app)


def test_opening_one_shows_it_and_its_controls() -> None:
    cold = keep("cold", "Ice.", params=SamplingParams(temperature=0.1, max_tokens=11, top_k=5))
    warm = keep("warm", "Sun.", params=SamplingParams(temperature=1.5, max_tokens=22))
    app = open_(page().run(), cold)
    assert "Ice." in [m.value for m in app.markdown]
    assert app.query_params["c"] == cold.conversation_id
    assert app.slider(key="temperature").value == 0.1
    assert app.number_input(key="max_tokens").value == 11
    assert app.number_input(key="top_k").value == 5
    assert app.text_area(key="system_prompt").value == "About cold"
    open_(app, warm)
    assert "Ice." not in [m.value for m in app.markdown]
    assert app.slider(key="temperature").value == 1.5
    assert app.number_input(key="max_tokens").value == 22
    assert app.number_input(key="top_k").value is None
    # What is changed then stays, whatever is clicked.
    app.slider(key="temperature").set_value(0.9).run()
    app.number_input(key="max_tokens").set_value(33).run()
    assert app.slider(key="temperature").value == 0.9
    assert app.number_input(key="max_tokens").value == 33
    open_(app, cold)
    assert app.number_input(key="max_tokens").value == 11


def test_a_question_sent_in_the_moment_of_new_chat_is_asked_and_not_lost() -> None:
    app = page().run()
    app.chat_input[0].set_value("an old one").run()
    app.chat_input[0].set_value("a new one")
    app.button(key="new_chat").click().run()
    (new, old) = resources.chat().store.listed("local", 10)
    assert (old.title, new.title) == ("an old one", "a new one")
    assert app.session_state.conversation == new.key


def test_a_new_chat_is_empty_and_the_old_one_stays() -> None:
    app = page().run()
    app.chat_input[0].set_value("first").run()
    old = shown(app)
    app.button(key="new_chat").click().run()
    assert shown(app) != old
    assert "You asked: first" not in [m.value for m in app.markdown]
    assert titles(app) == ["first"]
    app.chat_input[0].set_value("second").run()
    assert titles(app) == ["second", "first"]
    open_(app, ConversationKey("local", old))
    assert "You asked: first" in [m.value for m in app.markdown]


def test_what_was_refused_in_one_conversation_isnt_said_in_another() -> None:
    one, other = keep("one"), keep("other")
    app = open_(page().run(), one)
    app.text_area(key="stop_lines").set_value("a\nb\nc\nd\ne")
    app.chat_input[0].set_value("Hello").run()
    assert app.warning
    assert app.chat_input[0].value == "Hello"
    open_(app, other)
    assert not app.warning
    assert not app.chat_input[0].value


def test_renaming() -> None:
    key = keep("a question")
    app = act(page().run(), key, "Rename")
    field = app.text_input(key="new_title")
    assert field.value == "a question"
    field.set_value("  my   own ").run()
    assert titles(app) == ["my own"]
    assert head(key).title_by == "person"
    app = act(app, key, "Rename")
    app.text_input(key="new_title").set_value("   ").run()
    assert titles(app) == ["my own"]


def test_pinning_and_unpinning() -> None:
    old = keep("old", ago_s=9 * DAY_S)
    keep("new")
    app = act(page().run(), old, "Pin")
    assert titles(app) == ["old", "new"]
    assert captions(app)[0] == "Pinned"
    act(app, old, "Unpin")
    assert titles(app) == ["new", "old"]


def test_deleting_can_be_undone_until_the_next_action() -> None:
    one, other = keep("one"), keep("other", ago_s=9)
    app = act(page().run(), one, "Delete")
    assert titles(app) == ["other"]
    undo = app.button(key="undo_delete")
    assert undo.label == "Undo deleting “one”"
    undo.click().run()
    assert titles(app) == ["one", "other"]
    assert [b for b in app.button if b.key == "undo_delete"] == []
    act(app, one, "Delete")
    open_(app, other)
    assert [b for b in app.button if b.key == "undo_delete"] == []
    assert resources.chat().state(one) is None


def test_deleting_the_present_one_opens_a_new_one() -> None:
    key = keep("the present one", "Here.")
    app = act(open_(page().run(), key), key, "Delete")
    assert shown(app) != key.conversation_id
    assert "Here." not in [m.value for m in app.markdown]
    assert not app.info  # nothing was lost: it was meant
    app.button(key="undo_delete").click().run()
    assert titles(app) == ["the present one"]


def test_one_that_another_tab_deleted_opens_with_a_sentence() -> None:
    key = keep("gone soon")
    app = page().run()
    resources.chat().delete(key)
    open_(app, key)
    assert not app.exception
    assert "isn’t here" in app.info[0].value
    app.chat_input[0].set_value("on we go").run()
    assert not app.info


def test_the_present_one_deleted_in_another_tab_is_left() -> None:
    key = keep("shared", "Together.")
    app = open_(page().run(), key)
    resources.chat().delete(key)
    app.run()
    assert "Together." not in [m.value for m in app.markdown]
    assert "isn’t here" in app.info[0].value
    app.chat_input[0].set_value("another").run()
    assert resources.chat().state(key) is None


@pytest.mark.parametrize(
    ("query", "found"),
    [("whale", ["animals"]), ("散步", ["天气"]), ("ANIMALS", ["animals"]), ("nowhere", [])],
)
def test_searching(query: str, found: list[str]) -> None:
    keep("animals", "The blue whale is the largest.")
    keep("天气", "今天的天气很好，适合散步。")
    app = page().run()
    app.text_input(key="search").set_value(query).run()
    assert not app.exception
    assert titles(app) == found
    assert any("Nothing found" in caption for caption in captions(app)) == (not found)
    app.text_input(key="search").set_value("").run()
    assert len(titles(app)) == 2


def test_a_snippet_is_text_with_the_hit_emphasised() -> None:
    keep("x", "See <b>bold</b> & a needle <script>alert(1)</script>")
    app = page().run()
    app.text_input(key="search").set_value("needle").run()
    bodies = [element.proto.body for element in app.get("html")]
    (snippet,) = [body for body in bodies if body.startswith('<div class="steady-snippet')]
    assert "<mark>needle</mark>" in snippet
    assert "<script" not in snippet
    assert "<b>" not in snippet


def test_show_more() -> None:
    for number in range(45):
        keep(f"number {number}", ago_s=float(number))
    app = page().run()
    assert len(titles(app)) == 20
    app.button(key="list_more").click().run()
    assert len(titles(app)) == 40
    app.button(key="list_more").click().run()
    assert len(titles(app)) == 45
    assert [b for b in app.button if b.key == "list_more"] == []


def test_nothing_in_a_title_is_markup() -> None:
    assert literal("plain 标题") == "plain 标题"
    assert literal("a  \n# b") == "a \\# b"
    assert literal("**b**") == "\\*\\*b\\*\\*"
    assert literal(":red[x]") == "\\:\u2060red&#91;x&#93;"
    assert literal("Qwen/Qwen2.5-0.5B_Instruct") == "Qwen/Qwen2.5-0.5B_Instruct"
    assert literal("127.0.0.1:5001") == "127.0.0.1:5001"
    assert literal("a\u202eb\u200bc") == "abc"
    assert literal("--> :smile:") == "\\-\u2060\\-\u2060\\>\u2060 \\:\u2060smile\\:\u2060"
    hostile = "**b** :red[x] :material/home: $x$ `c` <b>h</b> [l](http://e.org) ![i](x) -->"
    keep(hostile)
    app = page().run()
    assert titles(app) == [literal(hostile)]


def test_trouble_with_the_database_is_said_once_and_goes_away(tmp_path: Path) -> None:
    key = keep("pinned in spite of it")
    app = page().run()
    assert not app.warning
    chat = resources.chat()
    other = sqlite3.connect(tmp_path / "kept.sqlite3", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        chat.pin(key, True)  # waits for the other as long as a page may, and then goes on
        app.run()
        assert not app.exception
        assert len(app.warning) == 1
        assert captions(app)[0] == "Pinned"
        other.execute("ROLLBACK")
    finally:
        other.close()
    deadline_s = time.monotonic() + 60
    while chat.store.trouble is not None and time.monotonic() < deadline_s:
        time.sleep(0.05)
    app.run()
    assert not app.warning


def test_one_conversation_that_the_database_refuses_is_said_where_it_is_shown(
    tmp_path: Path,
) -> None:
    key, other = keep("refused"), keep("fine")
    app = open_(page().run(), key)
    assert not app.warning
    with sqlite3.connect(tmp_path / "kept.sqlite3") as database:
        database.execute(
            "CREATE TRIGGER refuse BEFORE UPDATE ON conversations "
            f"WHEN NEW.conversation_id = '{key.conversation_id}' "
            "BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    database.close()
    resources.chat().pin(key, True)
    app.run()
    assert "refused what should be saved" in app.warning[0].value
    assert not open_(app, other).warning


def test_what_was_found_isnt_looked_up_by_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    store, looked = resources.chat().store, []
    search = store.search

    def counted(owner: str, query: str, limit: int) -> list[SearchHit]:
        looked.append(query)
        return search(owner, query, limit)

    monkeypatch.setattr(store, "search", counted)
    monkeypatch.setattr(conversation_list, "FOUND_S", 3600.0)
    old = keep("An old teapot", ago_s=90 * DAY_S)
    for number in range(25):  # more than are listed
        keep(f"Number {number}")
    app = page().run()
    app.text_input(key="search").set_value("teapot").run()
    app.run()
    app.run()
    assert looked == ["teapot"]
    assert titles(app) == ["An old teapot"]
    app.menu_button(key=f"menu-{old.conversation_id}").click("rename").run()
    app.text_input(key="new_title").set_value("Another teapot").run()
    assert titles(app) == ["Another teapot"]
    looked.clear()
    keep("A new teapot")
    app.run()
    assert looked == ["teapot"]
    assert set(titles(app)) == {"Another teapot", "A new teapot"}


def test_a_time_zone_that_nobody_knows_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(st.context), "timezone", property(lambda _: "Etc/Unknown"))
    monkeypatch.setattr(type(st.context), "timezone_offset", property(lambda _: -480))
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)  # 08:00 UTC
    key = keep("What time is it?")
    app = open_(page().run(), key)
    assert not app.exception
    told = [each.proto.body for each in app.get("html")]
    assert any('title="2027-01-15 16:00"' in html for html in told)
