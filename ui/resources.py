"""What all sessions of this process share: settings, backends, conversations.

The only file that names concrete backends. Each factory is quick: loading a model goes on in the
background (`Backend.prepare`), so no session waits in a cache lock.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import streamlit as st

from llm.chat import Chat
from llm.conversations import ConversationStore
from llm.errors import SettingsError
from llm.fault_log import log_fault
from llm.registry import JobRegistry
from llm.settings import Settings, load_settings
from llm.types import Backend

logger = logging.getLogger(__name__)


@st.cache_resource(show_spinner=False)
def settings() -> Settings:
    """The settings, read once.

    Raises:
        SettingsError: they can't be used.
    """
    return load_settings()


_to_close: list[Callable[[], None]] = []


def _noted(backend: Backend) -> Backend:
    _to_close.insert(0, backend.close)
    return backend


@st.cache_resource(show_spinner=False)
def local_backend() -> Backend:
    """The transformers model, loaded once for all sessions."""
    from llm.local_backend import LocalBackend

    return _noted(LocalBackend.from_settings(settings()))


@st.cache_resource(show_spinner=False)
def vllm_backend() -> Backend:
    """The OpenAI-compatible server."""
    from llm.vllm_backend import VllmBackend

    return _noted(VllmBackend.from_settings(settings()))


@st.cache_resource(show_spinner=False)
def scripted_backend() -> Backend:
    """The backend that says what it is told."""
    from llm.scripted_backend import ScriptedBackend

    return _noted(ScriptedBackend.from_settings(settings()))


BACKENDS: dict[str, Callable[[], Backend]] = {
    "local": local_backend,
    "vllm": vllm_backend,
    "scripted": scripted_backend,
}


@st.cache_resource(show_spinner=False)
def registry() -> JobRegistry:
    """The running answers of this process."""
    # The backends have watchdogs of their own; this one is for a backend that is stuck itself.
    made = JobRegistry(idle_limit_s=settings().idle_timeout_s + 5)
    _to_close.append(made.close)
    return made


@st.cache_resource(show_spinner=False)
def chat() -> Chat:
    """The conversations of this process."""
    return Chat(ConversationStore(), registry(), BACKENDS, settings().max_question_chars)


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[dict[str, object]]:
    """The process's life: at its end every answer is stopped and every backend freed.

    The first backend gets ready at once, not at the first visit: loading takes seconds.
    """
    with suppress(SettingsError):  # the page says it
        BACKENDS[settings().backends[0]]().prepare()
    yield {}
    # What was made last is closed first: the answers before the backends that give them.
    for close in reversed(_to_close):
        try:
            close()
        except Exception as error:  # noqa: BLE001 - the others must be closed as well
            log_fault(logger, "Closing failed", error)
