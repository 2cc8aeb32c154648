"""What all sessions of this process share: settings, backends, conversations.

Each factory is quick: loading a model goes on in the background (`Backend.prepare`), so no session
waits in a cache lock.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from llm.answer_cache import AnswerCache
from llm.cache_rules import CacheRules
from llm.chat import Chat
from llm.context_meter import ContextMeter
from llm.conversations import ConversationStore
from llm.daily_purge import KEPT_DELETED_S, DailyPurge
from llm.doctor import Doctor
from llm.engine import Engine
from llm.errors import SettingsError
from llm.fault_log import log_fault
from llm.named_backends import NamedBackends
from llm.registry import JobRegistry
from llm.settings import Settings, load_settings
from llm.types import Backend

if TYPE_CHECKING:
    from llm.conversation_archive import ConversationArchive
    from llm.conversation_database import ConversationDatabase
    from llm.embedding import EmbeddingModel
    from llm.local_backend import LocalBackend
    from llm.metrics_log import MetricsLog
    from llm.metrics_prometheus import PrometheusFigures
    from llm.model_list_local import LocalModelList
    from llm.patient_backend import PatientBackend
    from llm.preset_store import PresetStore
    from llm.vllm_backend import VllmBackend

logger = logging.getLogger(__name__)


@st.cache_resource(show_spinner=False)
def settings() -> Settings:
    """The settings, read once.

    Raises:
        SettingsError: they can't be used.
    """
    return load_settings()


_to_close: list[Callable[[], None]] = []


@st.cache_resource(show_spinner=False)
def _named() -> NamedBackends:
    """The backends, each made once for all sessions."""
    made = NamedBackends(settings())
    _to_close.insert(0, made.close)
    return made


def local_backend() -> LocalBackend:
    """The transformers model, loaded once for all sessions."""
    return _named().local()


def local_models() -> LocalModelList:
    """The local models that there are to choose from."""
    return _named().local_models()


def server_alone(name: str) -> VllmBackend:
    """One server with nothing done for it: no waiting, and no other in its place."""
    return _named().server_alone(name)


def vllm_backend(name: str) -> PatientBackend:
    """One server with what is done where it doesn't answer at once."""
    return _named().server(name)


def scripted_backend() -> Backend:
    """The backend that says what it is told."""
    return _named().scripted()


def servers() -> tuple[PatientBackend, ...]:
    """The servers in the settings' order."""
    return _named().servers()


def backends() -> Mapping[str, Callable[[], Backend]]:
    """Every backend by its id: its kind, for a server `vllm/` and its name."""
    return _named().by_id()


@st.cache_resource(show_spinner=False)
def registry() -> JobRegistry:
    """The running answers of this process."""
    made = JobRegistry.from_settings(settings())
    _to_close.append(made.close)
    return made


@st.cache_resource(show_spinner=False)
def database() -> ConversationDatabase:
    """Where conversations and presets are kept."""
    from llm.conversation_database import ConversationDatabase

    return ConversationDatabase(settings().conversations_url(), runner=uuid.uuid4().hex)


@st.cache_resource(show_spinner=False)
def embedding_model() -> EmbeddingModel | None:
    """What makes vectors of texts, for the cache and for the API; None where settings name none."""
    from llm.embedding import EmbeddingModel

    made = EmbeddingModel.from_settings(settings())
    if made is not None:
        _to_close.append(made.close)
    return made


@st.cache_resource(show_spinner=False)
def cache() -> AnswerCache:
    """Answers that are given again."""
    from llm.cache_stores import open_store
    from llm.similar_answers import SimilarAnswers

    told = settings()
    model = embedding_model()
    made = AnswerCache(
        partial(open_store, told),
        CacheRules.from_settings(told),
        (lambda guard: SimilarAnswers(guard, model)) if model is not None else None,
    )
    if model is not None and told.cache == "similar":
        model.ready()  # it begins to get ready, beside the language model
    _to_close.append(made.close)
    return made


def gauges() -> tuple[int, int]:
    """Questions in line, and the memory in bytes, of this process now."""
    from llm.process_memory import memory_bytes

    return registry().in_line(), memory_bytes()


@st.cache_resource(show_spinner=False)
def exporter() -> PrometheusFigures | None:
    """This process's figures for Prometheus; None where that is off."""
    if settings().metrics_token is None:
        return None
    from llm.metrics_prometheus import PrometheusFigures

    return PrometheusFigures(gauges)


@st.cache_resource(show_spinner=False)
def metrics() -> MetricsLog:
    """Keeps the figures of answers; the chat closes it."""
    from llm.metrics_log import MetricsLog

    return MetricsLog(database(), gauges=gauges, exporter=exporter())


@st.cache_resource(show_spinner=False)
def chat() -> Chat:
    """All conversations, and the answers of this process."""
    store = ConversationStore(database())
    told = settings()
    made = Chat(
        store,
        registry(),
        backends(),
        max_question_chars=told.max_question_chars,
        max_answer_tokens=told.max_answer_tokens,
        cache=cache(),
        metrics=metrics(),
    )
    _to_close.append(made.close)
    return made


@st.cache_resource(show_spinner=False)
def engine() -> Engine:
    """Has questions answered that are no conversation's: those of the API."""
    made = Engine(registry(), backends(), cache=cache(), metrics=metrics())
    _to_close.insert(0, metrics().close)  # the chat does, too, where anybody has opened the page
    return made


@st.cache_resource(show_spinner=False)
def archive() -> ConversationArchive:
    """All conversations of a person taken together: out, in, for good away."""
    from llm.conversation_archive import ConversationArchive

    return ConversationArchive(database())


@st.cache_resource(show_spinner=False)
def presets() -> PresetStore:
    """Everybody's presets."""
    from llm.preset_store import PresetStore

    return PresetStore(database())


@st.cache_resource(show_spinner=False)
def daily_purge() -> DailyPurge:
    """Has what was deleted long ago go for good, from the first call on."""
    made = DailyPurge(archive, KEPT_DELETED_S)
    _to_close.append(made.close)
    return made


@st.cache_resource(show_spinner=False)
def doctor() -> Doctor:
    """Looks at this installation, one round at a time for all sessions."""
    return Doctor()


@st.cache_resource(show_spinner=False)
def context_meter() -> ContextMeter:
    """Counts what conversations take of their models' windows."""
    made = ContextMeter()
    _to_close.append(made.close)
    return made


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[dict[str, object]]:
    """The process's life: at its end every answer is stopped and every backend freed.

    The first backend gets ready at once, not at the first visit: loading takes seconds. So does the
    database, in the background: the purge is the first to open it.
    """
    with suppress(SettingsError):  # the page says it
        kind = settings().backends[0]
        for backend in servers() if kind == "vllm" else (backends()[kind](),):
            backend.prepare()
        daily_purge()
        metrics().start()
    yield {}
    # What was made last is closed first: the answers before the backends that give them.
    for close in reversed(_to_close):
        try:
            close()
        except Exception as error:  # noqa: BLE001 - the others must be closed as well
            log_fault(logger, "Closing failed", error)
