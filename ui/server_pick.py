"""Which model of which server is asked, and how the servers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_tree import Turn
from llm.literal_markdown import literal
from llm.seen_text import seen
from llm.server_state import spoken
from ui import resources
from ui.backend_status import StatusPlace, dot, phase_word
from ui.callback import callback
from ui.language import say

if TYPE_CHECKING:
    from llm.patient_backend import PatientBackend

Pick = tuple[str, str]
"""A server's name and the name of one of its models, empty for whichever it asks by default."""

_KEY = "model_pick"
_PICKED = "picked"


def picked() -> Pick:
    """What was picked last; the first server's default model where nothing was.

    It stays while its server is away. Only failover, where settings allow it, asks another model
    than the one chosen, where no other server is known to have that; the page says whom it asks,
    and the answer's receipt names the model and the server.
    """
    return st.session_state.get(_PICKED) or (resources.servers()[0].server, "")


def pick_as(turn: Turn) -> None:
    """Pick what this turn was asked of, if there is such a server. Before the list is drawn."""
    kind, _, server = turn.backend.partition("/")
    if kind == "vllm" and any(known.server == server for known in resources.servers()):
        st.session_state[_PICKED] = (server, turn.model)


def draw_pick(pick_place: DeltaGenerator, status_place: DeltaGenerator) -> StatusPlace:
    """Draw the list of all models and, below, each server with its state."""
    servers = resources.servers()
    options = _options(servers)
    # Set anew each time: the widget's own memory ends when another kind of backend is chosen.
    st.session_state[_KEY] = _present(options)
    pick_place.selectbox(
        say("sidebar-model"), options, key=_KEY, format_func=_label, on_change=callback(_keep)
    )
    place = StatusPlace(
        status_place, lambda: _states(servers), drawn_with=lambda: _options(servers)
    )
    st.session_state.servers_drawn = (_states(servers), options)
    return place


def servers_changed() -> bool:
    """Whether the servers are no longer as the page says."""
    drawn = st.session_state.get("servers_drawn")
    if st.session_state.get("backend") != "vllm" or drawn is None:
        return False
    servers = resources.servers()
    return bool((_states(servers), _options(servers)) != drawn)


def _options(servers: Sequence[PatientBackend]) -> list[Pick]:
    """Every model of every server; a server whose models nobody knows yet stands by itself."""
    wanted = picked()
    options: list[Pick] = []
    for server in servers:
        own = [(server.server, model.name) for model in server.models()]
        if wanted[0] == server.server and wanted[1] and wanted not in own:
            own.append(wanted)
        options += own or [(server.server, "")]
    return options


def _present(options: list[Pick]) -> Pick:
    """The option that is picked."""
    server, model = picked()
    return next(option for option in options if option[0] == server and model in ("", option[1]))


def _label(option: Pick) -> str:
    """The server first: a long model's name is cut off, and two servers may have the same."""
    server, model = option
    backends = resources.servers()
    window = next(b.context_tokens(model) for b in backends if b.server == server)
    names = [server] if len(backends) > 1 or not model else []
    names += [_short(model, backends, server)] if model else []
    return " · ".join([*names, _in_thousands(window)] if model and window else names)


def _short(model: str, servers: Sequence[PatientBackend], server: str) -> str:
    """The model's name as people say it, or all of it where that would be another's too."""
    known = [m.name for each in servers if each.server == server for m in each.models()]
    alike = sum(seen(spoken(name)) == seen(spoken(model)) for name in {*known, model})
    if alike == 1 and seen(spoken(model)).strip():
        return seen(spoken(model))
    return model if model.strip(" /") and model == seen(model) else repr(model)


def _in_thousands(tokens: int) -> str:
    """A window as people call it: 32k for 32,768."""
    return f"{tokens // 1024}k" if tokens >= 1024 else str(tokens)


def _keep() -> None:
    # Where the list has changed meanwhile, the browser's choice may come back as bare text.
    if isinstance(option := st.session_state[_KEY], tuple):
        st.session_state[_PICKED] = option


def _states(servers: Sequence[PatientBackend]) -> str:
    """A line for each server, and what there is to say about the model that is picked."""
    wanted, model = picked()
    lines = []
    for server in servers:
        status = server.status()
        lines.append(f"{dot(status)} **{literal(server.server)}** {phase_word(status)}")
        if server.server != wanted:
            continue
        if status.ready and model and model not in [known.name for known in server.models()]:
            lines[-1] += f" · {say('sidebar-model-gone', server=literal(server.server))}"
    return "  \n".join(lines)
