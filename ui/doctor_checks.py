"""All that the doctor looks at, by what this installation has."""

from __future__ import annotations

from functools import partial

import streamlit as st

from llm.doctor import Check, Finding
from llm.doctor_access import AccessCheck, ApiCheck, LineCheck
from llm.doctor_stores import AnswersCheck, DatabaseCheck, DiskCheck, FolderCheck
from llm.errors import Reason
from llm.types import CancelToken
from ui import resources
from ui.doctor_streamlit import GROUP as APP
from ui.doctor_streamlit import option_checks
from ui.owner import providers

_PROXY_HEADERS = ("X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "Via")


def make_checks() -> list[Check]:
    """The checks, for one round that all share. Quick; nothing is asked yet."""
    told = resources.settings()
    found: list[Check] = []
    if "local" in told.backends:
        found += _local()
    if "vllm" in told.backends:
        found += _servers()
    found += [
        DatabaseCheck(resources.database(), on_server=_on_server(told.conversations_url())),
        AnswersCheck(told),
        FolderCheck(told.data_dir),
        # The second is where the database is, if that is a file.
        DiskCheck((told.data_dir, told.answers_file().parent)),
        *option_checks(),
        ApiCheck(APP, key=told.api_key is not None, on_loopback=told.api_on_loopback),
    ]
    return found


def own_findings() -> list[tuple[Check, Finding]]:
    """What depends on how this page was reached, so that a shared round can't say it. Quick."""
    access = AccessCheck(
        APP,
        str(st.get_option("server.address") or ""),
        forwarded=any(name in st.context.headers for name in _PROXY_HEADERS),
        signs_in=bool(providers()),
    )
    return [(access, access.run(CancelToken()))]


def _local() -> list[Check]:
    from llm import doctor_local as of

    backend, models = resources.local_backend(), resources.local_models()
    return [
        of.StateCheck(backend),
        of.FilesCheck(backend),
        of.TokenizerCheck(backend),
        of.TemplateCheck(backend, models),
        of.DeviceCheck(backend),
        of.AttentionCheck(backend),
        of.MemoryCheck(backend, models),
        of.ThreadsCheck(backend),
        LineCheck(of.GROUP, resources.registry(), backend, partial(of.why_not, backend)),
    ]


def _servers() -> list[Check]:
    from llm.doctor_server import ClockCheck, ModelCheck, ReachCheck, ServerLook
    from llm.doctor_stream import StreamCheck

    told, found = resources.settings(), list[Check]()
    for server in told.all_servers():
        group = Reason("doctor-group-server", {"name": server.name})
        look = ServerLook(server, told.connect_timeout_s)
        found += [
            ReachCheck(group, look, unset=not told.server_is_named),
            ModelCheck(group, look, told.max_tokens),
            ClockCheck(group, look),
            LineCheck(
                group, resources.registry(), resources.vllm_backend(server.name), look.why_not
            ),
            # Last: they run one after another, and this one takes its time.
            StreamCheck(group, look, resources.server_alone(server.name)),
        ]
    return found


def _on_server(url: str) -> bool:
    return not url.startswith("sqlite")
