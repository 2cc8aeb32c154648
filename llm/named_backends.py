"""The backends that settings name, each made when it is first asked for. Every face takes them here.

The only file that names concrete backends; each is imported when it is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from llm.types import Backend

if TYPE_CHECKING:
    from llm.local_backend import LocalBackend
    from llm.model_list_local import LocalModelList
    from llm.patient_backend import PatientBackend
    from llm.scripted_backend import ScriptedBackend
    from llm.settings import Settings
    from llm.vllm_backend import VllmBackend

T = TypeVar("T")
B = TypeVar("B", bound=Backend)


def server_id(name: str) -> str:
    """A server's id as a backend."""
    return f"vllm/{name}"


class NamedBackends:
    """Makes each backend once. Making one is quick: a model is loaded by `Backend.prepare`.

    Args:
        settings: say which there are.
        as_chosen: whether the local model is the one that was last chosen on the page, where there
            was one; else it is the settings'.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, settings: Settings, *, as_chosen: bool = True) -> None:
        self._settings = settings
        self._as_chosen = as_chosen
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}
        self._to_close: list[Backend] = []

    def local(self) -> LocalBackend:
        """The transformers model."""
        from llm.local_backend import LocalBackend, LocalOptions

        def make() -> LocalBackend:
            if self._as_chosen:
                return self._kept(LocalBackend.from_settings(self._settings))
            return self._kept(LocalBackend(LocalOptions.from_settings(self._settings)))

        return self._once("local", make)

    def local_models(self) -> LocalModelList:
        """The local models that there are to choose from."""
        from llm.local_backend import LocalOptions
        from llm.model_list_local import LocalModelList

        told = self._settings
        return self._once(
            "local models",
            lambda: LocalModelList.from_settings(
                told, self.local(), LocalOptions.from_settings(told)
            ),
        )

    def server_alone(self, name: str) -> VllmBackend:
        """One server with nothing done for it: no waiting, and no other in its place.

        Raises:
            KeyError: settings name no such server.
            SettingsError: its address can't be used.
        """
        from llm.vllm_backend import VllmBackend

        return self._once(
            f"server {name}", lambda: self._kept(VllmBackend.from_settings(self._settings, name))
        )

    def server(self, name: str) -> PatientBackend:
        """One server with what is done where it doesn't answer at once.

        Raises:
            ValueError: settings name no such server.
            SettingsError: an address can't be used.
        """
        return self._once(server_id(name), lambda: self._patient(name))

    def servers(self) -> tuple[PatientBackend, ...]:
        """The servers in the settings' order."""
        return tuple(self.server(server.name) for server in self._settings.all_servers())

    def scripted(self) -> ScriptedBackend:
        """The backend that says what it is told.

        Raises:
            SettingsError: its file can't be used.
        """
        from llm.scripted_backend import ScriptedBackend

        return self._once(
            "scripted", lambda: self._kept(ScriptedBackend.from_settings(self._settings))
        )

    def by_id(self) -> Mapping[str, Callable[[], Backend]]:
        """Every backend by its id: its kind, for a server `vllm/` and its name."""
        servers = {
            server_id(server.name): partial(self.server, server.name)
            for server in self._settings.all_servers()
        }
        return {"local": self.local, **servers, "scripted": self.scripted}

    def close(self) -> None:
        """Close what was made, the last one first."""
        with self._lock:
            made, self._to_close = self._to_close, []
        for backend in reversed(made):
            backend.close()

    def _patient(self, name: str) -> PatientBackend:
        from llm.patient_backend import PatientBackend

        told = self._settings
        names = [server.name for server in told.all_servers()]
        at = names.index(name)
        others = [*names[at + 1 :], *names[:at]] if told.server_failover else []
        return PatientBackend(
            self.server_alone(name),
            [self.server_alone(other) for other in others],
            wait_s=told.server_wait_s,
        )

    def _once(self, name: str, make: Callable[[], T]) -> T:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            made: T = self._made[name]
            return made

    def _kept(self, backend: B) -> B:
        self._to_close.append(backend)
        return backend
