"""Databases for whichever test wants one, and a browser test's second try where CI grants one.

SQLite, and a real PostgreSQL and Redis, are started once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer
from tests.servers.redis_server import RedisServer

SECOND_TRY = "STEADY_CHAT_SECOND_TRY"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Grant browser tests a second try, where that is asked for.

    They drive a page that goes on by itself, on a machine that may be busy. What failed at first
    is printed all the same: it is a race to be found, in the test or in the page.
    """
    if os.environ.get(SECOND_TRY):
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"failed at first: {report.nodeid}", "=")
        terminalreporter.write_line(report.longreprtext)
        for title, text in report.sections:
            terminalreporter.section(title, "-")
            terminalreporter.write_line(text)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running server. A test that stops it makes its own."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """An empty database of the test's own."""
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of the test's own, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'conversations.sqlite3'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(scope="session")
def running_redis() -> Iterator[RedisServer]:
    """A running server. A test that stops it makes its own."""
    server = RedisServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def redis_url(running_redis: RedisServer) -> str:
    """A Redis with nothing in it."""
    with running_redis.admin() as admin:
        admin.flushall()
    return running_redis.url
