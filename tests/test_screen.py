"""What is kept of an answer's time on the screen."""

from __future__ import annotations

from llm.conversation_json import receipt_from_json, receipt_to_json
from llm.conversation_tree import Receipt
from llm.screen import MOST_FRAMES, Screen, ScreenReport
from llm.screen_figures import ScreenFigures
from llm.types import Finish


def streaming(turn_id: str = "turn") -> Screen:
    """A screen that shows an answer with text, its first frame painted."""
    screen = Screen()
    screen.follow(turn_id)
    screen.frame(100)
    screen.credit.sent(100)
    screen.hear(ScreenReport(stamp=1))
    return screen


def test_the_worst_of_all_reports_is_kept_and_what_adds_up_is_added() -> None:
    screen = streaming()
    for freeze_ms, inp_ms in ((20, 0), (300, 64), (50, 16)):
        screen.hear(ScreenReport(stamp=1, freeze_ms=freeze_ms, inp_ms=inp_ms, blocked_ms=10))
    screen.frame(50)
    figures = screen.figures("turn")
    assert figures == ScreenFigures(300, 64, 30, figures.lag_ms, 2, 150)
    assert figures.lag_ms is not None


def test_the_pages_own_start_is_no_freeze_of_an_answer() -> None:
    screen = Screen()
    screen.follow("turn")
    screen.frame(100)
    screen.credit.sent(100)
    screen.hear(ScreenReport(freeze_ms=5000))
    screen.hear(ScreenReport(stamp=1, freeze_ms=4000))
    assert screen.figures("turn").longest_freeze_ms is None
    screen.hear(ScreenReport(stamp=1, freeze_ms=50))
    assert screen.figures("turn").longest_freeze_ms == 50


def test_where_nothing_was_said_nothing_froze() -> None:
    screen = streaming()
    screen.follow("next")
    screen.frame(0)
    screen.hear(ScreenReport(freeze_ms=1400))
    assert screen.news() is None


def test_a_run_that_shows_the_same_answer_again_adds_to_it_and_another_begins_anew() -> None:
    screen = streaming()
    screen.hear(ScreenReport(freeze_ms=300))
    screen.follow("turn")
    screen.hear(ScreenReport(freeze_ms=20))
    assert screen.figures("turn").longest_freeze_ms == 300
    screen.follow("next")
    assert screen.figures("turn") == ScreenFigures()
    assert screen.figures("next") == ScreenFigures()


def test_what_another_page_costs_is_not_the_answers() -> None:
    screen = streaming()
    screen.hear(ScreenReport(freeze_ms=50))
    screen.look_away()
    screen.hear(ScreenReport(freeze_ms=4000))
    assert screen.figures("turn").longest_freeze_ms == 50
    screen.follow("turn")
    screen.hear(ScreenReport(freeze_ms=60))
    assert screen.figures("turn").longest_freeze_ms == 60


def test_news_are_told_once() -> None:
    assert Screen().news() is None
    screen = Screen()
    screen.follow("turn")
    screen.frame(10)
    assert screen.news() is None, "the browser hasn't said anything"
    screen = streaming()
    assert screen.news() is None
    screen.hear(ScreenReport(freeze_ms=50))
    assert screen.news() == screen.figures("turn")
    assert screen.news() is None
    screen.hear(ScreenReport(freeze_ms=70))
    told = screen.news()
    assert told is not None
    assert told.longest_freeze_ms == 70


def test_a_log_keeps_the_latest_frames_within_its_bound() -> None:
    screen = Screen()
    screen.follow("turn")
    for size in range(MOST_FRAMES + 10):
        screen.frame(size)
    log = screen.log("turn")
    assert len(log.frames_s) == len(log.frame_bytes) <= MOST_FRAMES
    assert log.frame_bytes[-1] == MOST_FRAMES + 9


def test_what_is_heard_while_no_answer_is_shown_is_nobodys() -> None:
    screen = Screen()
    screen.hear(ScreenReport(freeze_ms=9000))
    screen.follow("turn")
    assert screen.figures("turn").longest_freeze_ms is None
    screen.let_go()
    screen.hear(ScreenReport(freeze_ms=9000))
    assert screen.turn_id == ""


def test_a_receipt_keeps_them() -> None:
    figures = ScreenFigures(120.5, None, 3.0, 80.0, 40, 5000)
    receipt = Receipt("model", Finish("stop"), screen=figures)
    assert receipt_from_json(receipt_to_json(receipt)) == receipt
    assert receipt_from_json({"screen": "what"}) == Receipt("", Finish("stop"))
    broken = receipt_from_json({"screen": {"longest_freeze_ms": "long", "frames": -1}})
    assert broken is not None
    assert broken.screen == ScreenFigures()
