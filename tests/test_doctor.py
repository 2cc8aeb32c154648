"""Rounds of checks: none waits for another, none for ever; what is told of them, without secrets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from pydantic import SecretStr

from llm.catalogue import catalogue
from llm.doctor import AT_ONCE, REST_S, Check, Doctor, DoctorRun, Finding
from llm.doctor_mask import MASK, Mask
from llm.doctor_report import report_of, to_markdown
from llm.errors import LLMError, Reason, ServerKeyError, StoreGoneError
from llm.settings import Server, Settings
from llm.types import CancelToken
from tests.driven_backend import ManualClock

LONG_S = 60.0
OK = Finding("ok", Reason("doctor-clock-same"))


@dataclass
class Told:
    """A check that does what it is told."""

    act: Callable[[CancelToken], Finding] = lambda cancel: OK
    name: str = "doctor-check-clock"
    group: Reason = field(default_factory=lambda: Reason("doctor-group-local"))
    limit_s: float = LONG_S

    def run(self, cancel: CancelToken) -> Finding:
        return self.act(cancel)


@pytest.fixture
def let_go() -> Iterator[threading.Event]:
    """What hanging checks wait for."""
    event = threading.Event()
    yield event
    event.set()


def finished(run: DoctorRun) -> list[Finding]:
    assert run.wait(1, LONG_S), "a check never ended"
    assert run.over
    return [each for each in run.findings if each is not None]


def raises(error: Exception) -> Callable[[CancelToken], Finding]:
    def act(cancel: CancelToken) -> Finding:
        raise error

    return act


def test_one_that_fails_stops_none_and_says_why() -> None:
    checks: list[Check] = [
        Told(raises(ServerKeyError(url="http://h/v1"))),
        Told(raises(ZeroDivisionError("with a secret"))),
        Told(),
    ]
    refused, failed, well = finished(Doctor().run(lambda: checks))
    assert (refused.level, refused.reason.message_id) == ("bad", "error-server-key")
    assert failed.reason == Reason("doctor-failed", {"kind": "ZeroDivisionError"})
    assert well.level == "ok"
    assert well.seconds >= 0


def test_one_that_hangs_is_given_up_and_the_others_are_told_before(
    let_go: threading.Event,
) -> None:
    cancelled = threading.Event()

    def hang(cancel: CancelToken) -> Finding:
        cancel.on_cancel(cancelled.set)
        let_go.wait()
        return OK

    hanging = [Told(hang, name=f"doctor-check-{n}", limit_s=0.2) for n in ("reach", "redis")]
    run = Doctor().run(lambda: [*hanging, *[Told() for _ in range(3 * AT_ONCE)]])
    found = finished(run)
    assert [each.level for each in found] == ["bad", "bad"] + ["ok"] * 3 * AT_ONCE
    assert found[0].reason.message_id == "doctor-too-long"
    assert cancelled.wait(LONG_S)


def test_one_that_hangs_yet_is_not_begun_a_second_time(let_go: threading.Event) -> None:
    clock, begun = ManualClock(), []
    doctor = Doctor(clock)

    def hang(cancel: CancelToken) -> Finding:
        begun.append(cancel)
        let_go.wait()
        return OK

    for expected in ("doctor-too-long", "doctor-still-hanging", "doctor-still-hanging"):
        (found,) = finished(doctor.run(lambda: [Told(hang, limit_s=0.05)]))
        assert found.reason.message_id == expected
        clock.advance(2 * REST_S)
    assert len(begun) == 1


def test_who_comes_while_a_round_runs_or_has_just_ended_is_given_that_one(
    let_go: threading.Event,
) -> None:
    clock, made = ManualClock(), []
    doctor = Doctor(clock)

    def hold(cancel: CancelToken) -> Finding:
        assert let_go.wait(LONG_S)
        return OK

    def checks() -> list[Check]:
        made.append(1)
        return [Told(hold)]

    first = doctor.run(checks)
    runs: list[DoctorRun] = []
    people = [threading.Thread(target=lambda: runs.append(doctor.run(checks))) for _ in range(8)]
    for person in people:
        person.start()
    for person in people:
        person.join(LONG_S)
    assert {id(run) for run in runs} == {id(first)}
    let_go.set()
    finished(first)
    assert doctor.run(checks) is first
    clock.advance(REST_S + 1)
    second = doctor.run(checks)
    assert second is not first
    finished(second)
    assert len(made) == 2


def test_no_more_checks_run_at_once_than_are_allowed(let_go: threading.Event) -> None:
    at_once, most, lock, full = 0, 0, threading.Lock(), threading.Event()

    def count(cancel: CancelToken) -> Finding:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
            if at_once == AT_ONCE:
                full.set()
        assert let_go.wait(LONG_S)
        with lock:
            at_once -= 1
        return OK

    run = Doctor().run(lambda: [Told(count) for _ in range(3 * AT_ONCE)])
    assert full.wait(LONG_S)
    assert run.left == 3 * AT_ONCE
    let_go.set()
    finished(run)
    assert most == AT_ONCE


def test_a_round_of_no_checks_is_over() -> None:
    assert Doctor().run(list).over


# -- the report --


def round_of(*findings: Finding, names: tuple[str, ...] = ()) -> DoctorRun:
    each = names or ("doctor-check-clock",) * len(findings)
    checks = [
        Told(lambda cancel, f=f: f, name=n)  # type: ignore[misc]
        for f, n in zip(findings, each, strict=True)
    ]
    run = Doctor().run(lambda: checks)
    finished(run)
    return run


@pytest.mark.parametrize("language", ["en", "zh"])
def test_problems_come_first_the_worst_before_all(language: str) -> None:
    run = round_of(
        OK,
        Finding("warn", Reason("doctor-access-open")),
        Finding("bad", Reason("doctor-redis-full")),
        Finding("skipped", Reason("doctor-loading")),
    )
    words = catalogue(language)
    report = report_of(run, words, Mask(()))
    assert [each.level for each in report.problems] == ["bad", "warn"]
    assert report.level == "bad"
    assert report.overall == words.say("doctor-problems", count=2)
    ((group, rest),) = report.groups
    assert group == words.say("doctor-group-local")
    assert [each.level for each in rest] == ["ok", "skipped"]
    text = to_markdown(report, "Doctor", datetime(2026, 11, 30, 9, 5, tzinfo=UTC))
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == "# Doctor"
    assert lines[1].startswith("2026-11-30 09:05 · ")
    assert [line[:3] for line in lines[2:]] == ["- ✗", "- !", "## ", "- ✓", "- –"]


def test_what_runs_yet_is_counted_and_is_no_problem(let_go: threading.Event) -> None:
    def hold(cancel: CancelToken) -> Finding:
        assert let_go.wait(LONG_S)
        return OK

    run = Doctor().run(lambda: [Told(), Told(hold)])
    assert run.wait(2, LONG_S)
    report = report_of(run, catalogue("en"), Mask(()))
    assert report.overall == "Checking: 1 of 2 done"
    assert (report.level, report.problems) == ("", ())
    let_go.set()
    finished(run)
    report = report_of(run, catalogue("en"), Mask(()))
    assert (report.level, report.overall) == ("ok", "All is well")


def test_what_has_nothing_to_say_for_one_reason_is_one_row() -> None:
    skipped = Finding("skipped", Reason("doctor-not-loaded"))
    names = ("doctor-check-state", "doctor-check-clock", "doctor-check-threads")
    run = round_of(skipped, OK, skipped, names=names)
    ((_, rest),) = report_of(run, catalogue("en"), Mask(())).groups
    assert [each.name for each in rest] == ["State · Threads", "Clock"]


# -- secrets --

HIDDEN = {
    "database_url": "postgresql+psycopg://dbuser:db%2Fp%40ss@db.internal/chat?sslpassword=q-p4ss",
    "redis_url": "redis://reader:r3d1s/pa@ss@cache.internal:6379/0",
    "vllm_base_url": "http://someone:b4s1c@gpu-1:8000/v1?token=qu3ry",
    "vllm_api_key": "sup3r-k3y",
}


def hidden_settings() -> Settings:
    return Settings(
        **{**HIDDEN, "vllm_api_key": SecretStr(HIDDEN["vllm_api_key"])},  # type: ignore[arg-type]
        servers=(
            Server(name="one", base_url="http://u:s3rv@gpu-2/v1", api_key=SecretStr("k3y-of-one")),
        ),
    )


SECRETS = [
    "db%2Fp%40ss",
    "db/p@ss",
    "q-p4ss",
    "r3d1s/pa@ss",
    "b4s1c",
    "qu3ry",
    "sup3r-k3y",
    "s3rv",
    "k3y-of-one",
    "en-v1r0n",
    "tok-hf",
]


def test_no_secret_of_any_setting_or_of_the_environment_goes_through() -> None:
    environment = {"REDIS_URL": "redis://:en-v1r0n@h", "HF_TOKEN": "tok-hf"}
    mask = Mask.of(hidden_settings(), environment)
    for secret in SECRETS:
        said = mask.text(f"before {secret}, “{secret}” and x{secret}y")
        assert secret not in said, secret
    for value in HIDDEN.values():
        assert not [s for s in SECRETS if s in mask.text(f"it said {value} twice")], value


@pytest.mark.parametrize(
    "place",
    [
        "postgresql+psycopg://dbuser:***@db.internal:5432/chat?host=db-2.internal",
        "rediss://reader@db.internal",
        "unix://reader@/db.internal/redis.sock",
        "sqlite:////db.internal/dbuser/kept.sqlite3",
    ],
)
def test_no_error_of_a_store_says_where_it_lies_or_who_asks(place: str) -> None:
    errors: list[LLMError] = [
        StoreGoneError(place=place),
        StoreGoneError(place="db.internal, dbuser"),  # as a driver may spell it
        ServerKeyError(url=place),  # whatever says an address
    ]
    checks = [Told(raises(error)) for error in errors]
    run = Doctor().run(lambda: checks)
    assert {each.level for each in finished(run)} == {"bad"}
    for language in ("en", "zh"):
        report = report_of(run, catalogue(language), Mask(()))
        text = to_markdown(report, "Doctor", datetime(2026, 11, 30, tzinfo=UTC))
        assert "StoreGoneError" in text
        for said in ("db.internal", "db-2", "dbuser", "reader"):
            assert said not in text, text


def test_every_hidden_field_there_is_is_taken_out() -> None:
    """Whatever setting hides itself, now or later."""
    settings = hidden_settings()
    hidden = [
        value.get_secret_value()
        for part in (settings, *settings.all_servers())
        for value in dict(part).values()
        if isinstance(value, SecretStr)
    ]
    assert len(hidden) >= 4
    mask = Mask.of(settings, {})
    assert all(value not in mask.text(f"“{value}”") for value in hidden)


def test_users_tokens_and_homes_are_masked_wherever_they_come_from() -> None:
    mask = Mask((), "/srv/people/ann")
    said = mask.text(
        "redis://a:b@h/0 http://a:b@h/0 Bearer abcdef123 hf_abcdefgh /srv/people/ann/models /srv/people/anna"
        " /home/bob/x /Users/eve/y C:\\Users\\mallory\\z"
    )
    assert said == (
        f"redis://{MASK} http://{MASK}@h/0 {MASK} {MASK} ~/models /srv/people/anna ~/x ~/y ~\\z"
    )


def test_a_short_secret_is_masked_alone_and_gives_itself_away_in_no_word() -> None:
    mask = Mask(("ab",))
    assert mask.text("the key ab of a cab") == f"the key {MASK} of a cab"


def test_only_values_are_masked_within_other_reasons_too() -> None:
    error: LLMError = ServerKeyError(url="http://h/answers")
    reason = Reason("doctor-attention-note", {"attention": "sdpa", "reason": error.reason})
    said = Mask(("answers", "computes")).reason(reason).sentence(catalogue("en"))
    assert said.startswith("It computes with sdpa: ")
    assert f"http://h/{MASK}" in said
