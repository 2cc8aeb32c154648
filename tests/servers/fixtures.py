"""Fixtures that give real servers, each started when the first test wants it.

A test module takes them by `pytest_plugins = "tests.servers.fixtures"` and never imports them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.real_server import RealServer, transformers_server, vllm_server


@pytest.fixture(scope="session")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """vLLM, ready."""
    server = vllm_server(tmp_path_factory.mktemp("vllm"))
    yield from _running(server)


@pytest.fixture(scope="session")
def transformers_serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """`transformers serve`, ready."""
    server = transformers_server(tmp_path_factory.mktemp("transformers-serve"))
    yield from _running(server)


def _running(server: RealServer) -> Iterator[RealServer]:
    server.start()
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()
