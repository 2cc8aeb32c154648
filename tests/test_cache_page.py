"""The page about the answer cache, by Streamlit's AppTest."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from llm.cache_guard import CacheGuard
from llm.cache_key import person_scope
from llm.cache_types import SHARED, AnswerStore, CacheStoreError
from llm.literal_markdown import literal
from llm.same_question import same_question
from pages import cache_page
from tests.cached_answers import answer_of, decision_of, digest_of
from tests.driven_backend import PATIENCE_S
from ui import near_misses, resources

ROOT = Path(__file__).parents[1]
MINE = person_scope("local")


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
    resources.cache().close()
    resources.chat().close()
    st.cache_resource.clear()


def page(**params: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=60)
    app._page_hash = calc_hash("cache")
    for name, value in params.items():
        app.query_params[name.replace("_", "-")] = value
    return app.run()


def drawn(app: AppTest) -> str:
    return "\n".join(each.proto.body for each in app.get("html"))


def captions(app: AppTest) -> str:
    return "\n".join(each.value for each in app.caption)


def guard() -> CacheGuard:
    return resources.cache()._guard


def keep(
    name: str = "a",
    text: str = "An answer.",
    *,
    model: str = "a model",
    question: str = "",
    scope: str = MINE,
) -> None:
    kept = answer_of(name, text, scope=scope, model=model, question=question, created_s=time.time())
    noted = replace(decision_of(name, scope=MINE), at_s=time.time())

    def write(store: AnswerStore) -> None:
        store.put(kept)
        store.note(noted)

    guard().ask(write, PATIENCE_S)


def test_a_models_name_is_shown_as_it_is() -> None:
    name = "**a** [link](http://x) :red[b] <b> &amp; `c`"
    keep(model=name)
    captions = [each.value for each in page().caption]
    assert any(each.startswith(f"{literal(name)} · a server · ") for each in captions)


def test_the_log_is_made_into_a_file_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(cache_page, "log_file", made.append)
    keep()
    app = page()
    assert not app.exception
    assert app.get("download_button")
    assert not made


def test_what_could_not_be_forgotten_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> int:
        raise CacheStoreError("down")

    keep()
    app = page()
    monkeypatch.setattr(resources.cache().contents, "clear", fails)
    app.button(key="cache_clear_yes").click().run()
    assert any("couldn’t be done" in warning.value for warning in app.warning)
    assert app.session_state["cache_shown"] == cache_page.SHOWN
    app.run()
    assert not app.warning


# -- what is chosen in the sidebar --


def test_what_was_chosen_is_in_the_address_and_comes_from_it() -> None:
    app = page()
    assert "cache" not in app.query_params
    app.radio(key="cache_mode").set_value("similar").run()
    app.toggle(key="cache_random").set_value(True).run()
    address = {name: app.query_params[name] for name in ("cache", "cache-random")}
    assert address == {"cache": "similar", "cache-random": "on"}
    again = page(cache="similar", cache_random="on")
    assert again.radio(key="cache_mode").value == "similar"
    assert again.toggle(key="cache_random").value is True
    again.radio(key="cache_mode").set_value("exact").run()
    assert again.query_params["cache"] == "exact", "what is usual here is a choice, too"


def test_off_in_the_address_is_off_for_the_first_question() -> None:
    app = page(cache="off")
    assert app.radio(key="cache_mode").value == "off"
    assert page(cache="nonsense", cache_random="7").radio(key="cache_mode").value == "exact"


def test_a_fresh_answer_is_not_in_the_address() -> None:
    app = page()
    app.toggle(key="cache_fresh_0").set_value(True).run()
    assert not [name for name in app.query_params if name.startswith("cache")]


# -- kept answers --

ANSWER = "## A **bold** head\n\n- one `two`\n\n![spy](http://x/y.png) :smile:"


def test_an_opening_is_shown_without_markup() -> None:
    keep(text=ANSWER)
    told = drawn(page())
    assert "A bold head one two spy :smile:" in told
    assert "**" not in told
    assert "`" not in told


def test_an_answer_is_read_and_drawn_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(text=ANSWER + "\n\nword " * 300 + "the end")
    contents, read = resources.cache().contents, []
    answer = contents.answer
    monkeypatch.setattr(
        contents, "answer", lambda who, digest: read.append(digest) or answer(who, digest)
    )
    app = page()
    assert not read
    assert not any("the end" in each.value for each in app.markdown)
    app.session_state[f"opened-{digest_of('a')}"] = True
    app.run()
    assert not app.exception
    assert read == [digest_of("a")]
    told = "\n".join(each.value for each in app.markdown)
    assert "## A **bold** head" in told
    assert "the end" in told
    assert "![spy]" not in told.replace("\\!", ""), "no picture is fetched"
    assert ":smile:" not in told.replace("\\:", ""), "no emoji is made of it"


def test_what_is_gone_when_it_is_opened_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    keep()
    app = page()
    monkeypatch.setattr(resources.cache().contents, "answer", lambda *_: None)
    app.session_state[f"opened-{digest_of('a')}"] = True
    app.run()
    assert "It isn’t there any more." in captions(app)

    def fails(*_: object) -> None:
        raise CacheStoreError("down")

    monkeypatch.setattr(resources.cache().contents, "answer", fails)
    app.run()
    assert not app.exception
    assert "The cache can’t be used at the moment" in captions(app)


def test_questions_are_searched() -> None:
    keep("a", question="How do I reverse a LIST?")
    keep("b", question="怎么把列表倒过来？")
    keep("c", question="100% cotton")
    app = page()
    for typed, found, left in (
        ("list", "LIST", "列表"),
        ("列表 ", "列表", "LIST"),
        ("%", "100% cotton", "LIST"),
    ):
        app.text_input(key="cache_search").set_value(typed).run()
        assert found in drawn(app)
        assert left not in drawn(app)
    app.text_input(key="cache_search").set_value("nothing like it").run()
    assert "No kept answer’s question has that in it." in captions(app)
    app.text_input(key="cache_search").set_value("").run()
    assert "LIST" in drawn(app)
    assert "列表" in drawn(app)


def test_a_search_does_not_change_what_is_chosen_to_be_forgotten() -> None:
    keep("a", question="First?", model="model one", scope=MINE)
    keep("b", question="Second?", model="model two", scope=MINE)
    app = page()
    app.selectbox(key="cache_clear_model").set_value("model one").run()
    app.text_input(key="cache_search").set_value("second").run()
    assert app.selectbox(key="cache_clear_model").value == "model one"
    app.button(key="cache_clear_yes").click().run()
    app.text_input(key="cache_search").set_value("").run()
    assert "Second?" in drawn(app)
    assert "First?" not in drawn(app)


# -- shared answers --


@pytest.mark.parametrize("allowed", [False, True])
def test_shared_answers_are_forgotten_only_where_settings_let_users(
    monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    monkeypatch.setenv("STEADY_CHAT_CACHE_SHARED", "true")
    monkeypatch.setenv("STEADY_CHAT_CACHE_SHARED_CLEAR", str(allowed).lower())
    st.cache_resource.clear()
    keep("mine", question="My own?")
    keep("all", question="Everybody’s?", scope=SHARED)
    app = page()
    assert "Everybody’s?" in drawn(app)
    assert ("can’t be forgotten here" in captions(app)) is not allowed
    assert ("Any user may forget it" in captions(app)) is allowed
    buttons = {each.key for each in app.button if str(each.key).startswith("forget-")}
    wanted = {f"forget-{digest_of('mine')}"}
    assert buttons == (wanted | {f"forget-{digest_of('all')}"} if allowed else wanted)
    app.button(key="cache_clear_yes").click().run()
    assert "My own?" not in drawn(app)
    assert ("Everybody’s?" in drawn(app)) is not allowed


def test_an_own_answer_is_not_called_shared() -> None:
    keep()
    told = captions(page())
    assert "shared" not in told
    assert "Everybody’s answers are their own." in told
    assert "Nobody signs in here" in told


def test_the_page_says_what_is_shared_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_CHAT_CACHE_SHARED", "true")
    st.cache_resource.clear()
    told = captions(page())
    assert "First questions without personal data are shared here" in told
    assert "their own." not in told


# -- whether it is in use --


def in_popover(app: AppTest) -> tuple[str, str]:
    """The label, and what the controls say of the next question."""
    labels = [
        each.proto.popover.label
        for each in app.sidebar.children.values()
        if each.type == "popover" and "Answer cache" in each.proto.popover.label
    ]
    told = [each.value for each in app.sidebar.markdown if "use" in each.value]
    return "".join(labels), "".join(told)


def test_sampled_answers_are_said_not_to_be_reused_until_something_is_changed() -> None:
    app = page()
    label, told = in_popover(app)
    assert label == "Answer cache: not used now"
    assert told.startswith("**Not used now**")
    assert "“Also reuse sampled answers”" in told
    for change, back in (
        (lambda: app.slider(key="temperature").set_value(0.0), 0.7),
        (lambda: app.number_input(key="seed").set_value(7), None),
        (lambda: app.number_input(key="top_k").set_value(1), None),
        (lambda: app.toggle(key="cache_random").set_value(True), None),
    ):
        widget = change()
        widget.run()
        label, told = in_popover(app)
        assert label == "Answer cache: exact"
        assert told.startswith("**In use now**")
        if widget.key != "cache_random":
            widget.set_value(back).run()
            assert in_popover(app)[0] == "Answer cache: not used now"


def test_nothing_is_said_of_a_cache_that_is_off_and_a_fresh_answer_is() -> None:
    app = page(cache="off")
    assert in_popover(app) == ("Answer cache: off", "")
    app = page(cache_random="on")
    app.toggle(key="cache_fresh_0").set_value(True).run()
    label, told = in_popover(app)
    assert label == "Answer cache: next one fresh"
    assert told.startswith("**Not used for the next question**")


def test_why_similar_questions_are_not_found_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("STEADY_CHAT_EMBEDDING_MODEL", "/nowhere/at/all")
    st.cache_resource.clear()
    app = page(cache="similar")
    similar = resources.cache()._similar
    assert similar is not None
    assert similar._model.wait(120) is None
    app.run()
    told = "\n".join(each.value for each in app.sidebar.caption)
    assert "/nowhere/at/all" in told.replace("\\", "")
    assert "there is no such folder" in told


# -- nearly given --


def keep_near(*pairs: tuple[str, str, str]) -> None:
    """The last one is the newest."""

    def write(store: AnswerStore) -> None:
        for number, (asked, kept, reason) in enumerate(pairs):
            noted = decision_of(number, scope=MINE, at_s=time.time() + number, question=asked)
            store.note(replace(noted, other=kept, reason=reason))

    guard().ask(write, PATIENCE_S)


def near_cards(app: AppTest) -> list[str]:
    return [body for body in drawn(app).split("\n") if body.startswith('<div class="steady-near"')]


def test_a_near_miss_says_which_was_asked_and_why_and_comes_once() -> None:
    keep_near(
        ("How do I sort 2 lists?", "How do I sort 3 lists?", "numbers"),
        ("Why is it not blue?", "Why is it <b>blue</b>?", "negation"),
        ("How do I sort 3 lists?", "How do I sort 2 lists?", "numbers"),
        ("How do I sort 2 lists?", "How do I sort 3 lists?", "numbers"),
        ("Something else?", "Something?", "never heard of"),
    )
    app = page()
    cards = near_cards(app)
    assert len(cards) == 3
    assert "Asked</div>" in cards[1]
    assert cards[1].index("sort 2 lists") < cards[1].index("Kept</div>")
    assert cards[1].index("Kept</div>") < cards[1].index("sort 3 lists")
    assert "&lt;b&gt;blue" in cards[2]
    told = captions(app)
    assert told.count("Refused: the numbers differ · likeness 0.93") == 1
    assert "Refused: one of them negates" in told
    assert "Refused: something may differ" in told


def test_a_near_miss_that_was_judged_keeps_its_place_until_the_next_run() -> None:
    keep_near(("One?", "1?", "words"), ("Two?", "2?", "words"), ("Two?", "2?", "words"))
    app = page()
    before = near_cards(app)
    assert len(before) == 2
    app.button(key="cache-same-decision 2").click().run()
    assert near_cards(app) == before, "the next card must not come under the mouse"
    assert "Noted: the same question." in captions(app)
    app.button(key="cache-different-decision 2").click().run()
    assert near_cards(app) == before
    assert "Noted: not the same question." in captions(app)
    decisions = guard().ask(lambda store: store.decisions(MINE), PATIENCE_S)
    assert {each.decision_id: each.judged for each in decisions} == {
        "decision 0": None,
        "decision 1": False,
        "decision 2": False,
    }
    app.run()
    assert near_cards(app) == before[1:]


def test_a_judgement_that_could_not_be_noted_is_not_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise CacheStoreError("down")

    keep_near(("One?", "1?", "words"))
    app = page()
    monkeypatch.setattr(resources.cache().contents, "judge", fails)
    app.button(key="cache-same-decision 0").click().run()
    assert any("couldn’t be done" in warning.value for warning in app.warning)
    assert "Noted" not in captions(app)


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("How do I sort 2 lists?", "How do I sort 3 lists?"),
        ("Why is the sky not blue?", "Why is the sky blue?"),
        ("Does a cat eat a mouse?", "Does a mouse eat a cat?"),
        ("Who was Ada Lovelace?", "Who was Alan Turing?"),
        ("What is a list?", "What is a tree?"),
        ('What does "yes" mean?', 'What does "no" mean?'),
        ("What does a_b do?", "What does a_c do?"),
        ("Explain this:\nx", "Explain this:\ny"),
        ("Why " * 200, "How " * 200),
        ("What is a list?", "列表是什么？"),
    ],
)
def test_whatever_the_rule_refuses_for_has_a_sentence(asked: str, kept: str) -> None:
    verdict = same_question(kept, asked)
    assert not verdict.same
    assert verdict.reason in near_misses.REASONS


# -- forgetting --


def test_forgetting_all_says_how_many_and_closes_its_popover() -> None:
    keep("a")
    keep("b")
    app = page()
    assert any(each.value.startswith("Forget all 2 answers") for each in app.markdown)
    assert app.button(key="cache_clear_yes").label == "Forget"
    app.session_state["cache_clearing"] = True
    app.run()
    assert app.session_state["cache_clearing"] is True
    app.button(key="cache_clear_yes").click().run()
    assert app.session_state["cache_clearing"] is False
    assert "2 answers were forgotten." in captions(app)


def test_a_row_that_is_forgotten_is_said_to_be() -> None:
    keep("a")
    app = page()
    app.button(key=f"forget-{digest_of('a')}").click().run()
    assert [each.value for each in app.toast] == ["One answer was forgotten."]


# -- a receipt --


def receipts() -> None:
    import streamlit as st

    from llm.conversation_tree import Receipt, Turn
    from llm.errors import Reason
    from llm.types import Finish, FromCache, SamplingParams, Usage
    from ui.receipt_line import receipt_line

    done = Finish("stop", Usage(5, 9))
    joined = Finish("stop", Usage(5, 9), why=Reason("finish-joined"))
    for finish, cached in ((done, FromCache("exact", "d", 0.0)), (done, None), (joined, None)):
        receipt = Receipt("m", finish, ttft_s=0.25, tokens_per_s=40.0, cached=cached)
        st.markdown(receipt_line(Turn("t", "?", "local", SamplingParams(), receipt=receipt)))


def test_an_answer_from_the_cache_is_told_without_speeds_and_a_joined_one_as_such() -> None:
    app = AppTest.from_function(receipts)
    app.session_state["language"] = "en"
    given, ordinary, joined = [each.value for each in app.run().markdown]
    assert "from the cache, exact" in given
    assert "9 tokens" in given
    assert "first text" not in given
    assert "tokens/s" not in given
    assert "first text after 0.25 s" in ordinary
    assert "40 tokens/s" in ordinary
    assert "finished" in ordinary
    assert "shared with the same question that was just being answered" in joined
    assert "finished" not in joined
