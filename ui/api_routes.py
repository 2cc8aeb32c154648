"""The engine's HTTP face, wired to what this process has."""

from __future__ import annotations

import signal
from contextlib import suppress

import streamlit as st
from starlette.routing import Route

from api.access import Access
from api.embeddings import Embeddings
from api.models import OfferedModel
from api.routes import api_routes
from api.service import Limits, Service
from llm.embedding import MINILM, SERVER
from llm.errors import SettingsError
from llm.minilm import NAME
from llm.models import EMBEDDED
from llm.named_backends import server_id
from llm.settings import Settings
from llm.usual_params import EMBEDDED_TEMPERATURE
from ui import resources


def routes() -> list[Route]:
    """The routes below `/v1` and `/stream`."""
    return api_routes(service)


@st.cache_resource(show_spinner=False)
def service() -> Service | None:
    """The API of this process; None while it is off, or settings can't be used."""
    with suppress(SettingsError):  # the page says it
        return _service(resources.settings())
    return None


def _service(told: Settings) -> Service | None:
    access = Access(
        told.api_key.get_secret_value() if told.api_key is not None else None,
        told.api_on_loopback,
        told.api_origins,
    )
    if not access.on:
        return None
    return Service(
        access,
        resources.engine(),
        _offered,
        Limits(
            body_bytes=1024 * told.api_max_body_kb,
            time_s=told.api_time_limit_s,
            usual_tokens=told.max_tokens,
            most_tokens=told.max_answer_tokens,
        ),
        cached=told.cache != "off",
        cache_random=told.cache_random,
        embeddings=_embeddings(told),
        stopping=_server_is_stopping,
    )


def _embeddings(told: Settings) -> Embeddings | None:
    model = resources.embedding_model()
    if model is None:
        return None
    named = told.embedding_model.strip().removeprefix(SERVER)
    return Embeddings(NAME if named == MINILM else named.rpartition("/")[2], model)


def _offered() -> tuple[OfferedModel, ...]:
    """What there is to ask, in the settings' order; the local model is the one that is chosen."""
    models: list[OfferedModel] = []
    told = resources.settings()
    for kind in told.backends:
        if kind == "local":
            chosen = resources.local_backend().chosen
            cool = EMBEDDED_TEMPERATURE if chosen.model.strip() == EMBEDDED else None
            models.append(OfferedModel("local", name=chosen.called, temperature=cool))
        elif kind == "vllm":
            for server in resources.servers():
                server.status()  # looks anew where the list is old
                own = server_id(server.server)
                listed = [
                    OfferedModel(own, model.name, model.name, model.context_tokens)
                    for model in server.models()
                ]
                # One that nobody has set up is offered where it is found.
                models += listed or ([OfferedModel(own)] if told.server_is_named else [])
        else:
            models.append(OfferedModel("scripted", name="scripted"))
    return tuple(models)


def _server_is_stopping() -> bool:
    """Whether uvicorn was told to stop: it waits for the connections that are open, and tells
    the app only afterwards.

    Source: uvicorn's Server.capture_signals, which makes its own method the signals' handler.
    """
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(server, "should_exit", False) is True
