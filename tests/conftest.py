"""Databases for whichever test wants one: SQLite, and a real PostgreSQL and Redis, started once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer
from tests.servers.redis_server import RedisServer


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
