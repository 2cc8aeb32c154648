"""Which local models there are: those of the settings, in folders, and in the hub's cache.

Looking is done on a thread of its own: a folder may lie on a disk that answers slowly or not at
all, and a GPU that is asked for the first time takes seconds. Nothing in here raises for what lies
in a folder; what can't be used is listed with the reason, or left out where it is no model at all.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from llm.embedded_model import embedded_path
from llm.errors import LLMError, ModelNotFoundError, Reason
from llm.fault_log import log_fault
from llm.local_conversions import folder_for
from llm.local_memory import (
    fixed_number_bytes,
    free_bytes,
    native_number_bytes,
    packs_weights,
)
from llm.local_source import conversion_of, may_be_converted_beside
from llm.model_facts import EMBEDDED_FACTS, ModelFacts, NoFactsError, facts_of_folder, facts_of_gguf
from llm.model_files import read_text
from llm.model_fit import Fit, fit, weights_bytes
from llm.models import ModelSpec, as_meant, display_name, resolve
from llm.served_values import whole_text

if TYPE_CHECKING:
    from llm.local_backend import LocalBackend, LocalOptions
    from llm.settings import Settings

log = logging.getLogger(__name__)

FRESH_S = 20.0
"""How old the list may be, while somebody looks at it."""
SOON_S = 2.0
"""The same while it isn't known yet what fits."""
DEEPEST = 3
"""Folders below a model folder in which models are looked for."""
MOST = 200
"""Models that are listed at most."""
_MOST_FOLDERS = 5_000

HALF_DOWNLOADED, NO_TEMPLATE = "reason-half-downloaded", "reason-no-chat-template"

_OTHER_GGUF = re.compile(r"mmproj|-0000[2-9]-of-|-000[1-9]\d-of-", re.IGNORECASE)
_SHARDED_GGUF = re.compile(r"-00001-of-0000[2-9]|-00001-of-000[1-9]\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model that can be chosen.

    Args:
        options: how it is loaded.
        facts: what its files say; None where there are none yet, or they can't be used.
        trouble: why it can't be used as it is.
        conversion: whether it must be converted first, and then whether there is memory for that
            `beside` another model or only `alone`.
    """

    options: LocalOptions
    facts: ModelFacts | None = None
    trouble: Reason | None = None
    conversion: Literal["", "beside", "alone"] = ""

    @property
    def impossible(self) -> bool:
        """Whether loading it can't but fail; what is half downloaded is fetched to the end."""
        return self.trouble is not None and self.trouble.message_id != HALF_DOWNLOADED

    @property
    def key(self) -> str:
        """What it is told apart by: the same files may be named twice, and loaded in two ways."""
        told = self.options
        ways = (told.quantization, told.dtype, told.attn_implementation, told.threads)
        return told.name or "|".join(map(str, (told.model, *ways)))


class LocalModelList:
    """The models there are, looked for anew now and then while somebody asks.

    Args:
        backend: what has one of them in memory, which is given back before another is loaded.
        base: how models are loaded where nothing else is said; also the first one.
        named: the others that settings name.
        folders: where models are looked for.
        with_hub_cache: whether the hub's cache is another such place.

    Thread-safety: every method may be called from any thread; none waits for a disk.
    """

    def __init__(
        self,
        backend: LocalBackend,
        base: LocalOptions,
        named: tuple[LocalOptions, ...] = (),
        folders: tuple[Path, ...] = (),
        with_hub_cache: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend = backend
        self._base = base
        self._named = (base, *named)
        self._folders = folders
        self._with_hub_cache = with_hub_cache
        self._clock = clock
        self._lock = threading.Lock()
        self._looked = threading.Event()
        self._looking = False
        self._looked_s = float("-inf")
        self._models = tuple(ListedModel(options) for options in self._named)
        self._number_bytes: int | None = None  # of a weight of number type `auto`
        self._packs = False  # whether bf16 models get a packed copy
        self._room_bytes: int | None = None  # what there is while no model is loaded

    @classmethod
    def from_settings(
        cls, settings: Settings, backend: LocalBackend, base: LocalOptions
    ) -> LocalModelList:
        named, folders = base.named(settings), settings.model_folders
        return cls(backend, base, named, folders, settings.list_hub_cache)

    def models(self) -> tuple[ListedModel, ...]:
        """As they were found last; at first those of the settings, of which nothing is known yet."""
        with self._lock:
            fresh_s = FRESH_S if self._room_bytes is not None else SOON_S
            if not self._looking and self._clock() - self._looked_s > fresh_s:
                self._looking = True
                try:
                    threading.Thread(target=self._look, name="list-models", daemon=True).start()
                except RuntimeError:  # the system gives no thread; the next time
                    self._looking = False
            return self._models

    def wait(self, timeout_s: float) -> bool:
        """Wait for the first look; whether it is over."""
        self.models()
        return self._looked.wait(timeout_s)

    @property
    def sizes_are_known(self) -> tuple[bool, bool]:
        """Whether it is known what models take, and whether that fits: not at once."""
        return self._number_bytes is not None, self._room_bytes is not None

    def weights_bytes(self, model: ListedModel) -> int | None:
        """What the model's weights take in memory; None while that isn't known."""
        number = fixed_number_bytes(model.options.dtype) or self._number_bytes
        if model.facts is None or number is None:
            return None
        told = model.options
        return weights_bytes(
            model.facts, told.quantization, number, packs=self._packed(told, number)
        )

    def fit(self, model: ListedModel) -> Fit | None:
        """Whether the model would fit in place of the one that is loaded; None while unknown."""
        number = fixed_number_bytes(model.options.dtype) or self._number_bytes
        if model.facts is None or number is None or self._room_bytes is None:
            return None
        told = model.options
        packs = self._packed(told, number)
        return fit(model.facts, told.quantization, number, self._room_bytes, packs=packs)

    def _packed(self, options: LocalOptions, number_bytes: int) -> bool:
        """Whether the model's number type and quantization are those of a packed copy."""
        is_bf16 = options.dtype == "bfloat16" or (options.dtype == "auto" and number_bytes == 2)
        return self._packs and is_bf16 and options.quantization == "auto"

    def _look(self) -> None:
        found, number, room, packs = None, None, None, False
        try:
            found = list_models(
                self._base, self._named, self._folders, with_hub_cache=self._with_hub_cache
            )
            number = native_number_bytes()
            packs = packs_weights()
            # One that is on its way into memory takes who knows how much of it by now.
            if number is not None and not self._backend.status().preparing:
                room = free_bytes()
        except Exception as error:  # noqa: BLE001 - the list stays as it was
            log_fault(log, "Looking for models failed", error)
        holds = self._backend.holds
        with self._lock:
            if found is not None and found != self._models:
                self._models = found
            self._number_bytes = number or self._number_bytes
            self._packs = packs or self._packs
            if room is not None:
                held = next((m for m in self._models if m.options == holds), None)
                self._room_bytes = room + (self.weights_bytes(held) or 0 if held else 0)
            self._looking, self._looked_s = False, self._clock()
        self._looked.set()


def list_models(
    base: LocalOptions,
    named: tuple[LocalOptions, ...],
    folders: tuple[Path, ...],
    *,
    with_hub_cache: bool = True,
) -> tuple[ListedModel, ...]:
    """Look now. Those that are named come first, in their order; the others by name.

    Args:
        base: how models are loaded that are found and not named.
    """
    listed: dict[str, ListedModel] = {}
    places: set[str] = set()
    for options in named:
        model = _named(options)
        if listed.setdefault(model.key, model) is model:
            places.add(_place(options.model))
    # Its own code is run for models that the operator named, not for any that somebody put there.
    base = replace(base, trust_remote_code=False)
    ways = [m for folder in folders for m in _in_folder(folder, base)]
    ways += _in_hub_cache(base) if with_hub_cache else ()
    found: dict[str, ListedModel] = {}
    for model in ways:
        place = _place(model.options.model)
        known = found.setdefault(place, model)
        if _detour(model, place) < _detour(known, place):
            found[place] = model
    others = [model for place, model in found.items() if place not in places]
    for model in sorted(others, key=lambda m: (m.options.called.lower(), m.key)):
        if model.key not in listed and len(listed) < MOST:
            listed[model.key] = model
    return tuple(listed.values())


def _detour(model: ListedModel, place: str) -> tuple[int, bool]:
    """How long the way to a model is, and whether there is a link on it."""
    return len(Path(model.options.model).parts), model.options.model != place


def _place(spec: str) -> str:
    """Where a model lies, whichever way it is written."""
    try:
        path = Path(as_meant(spec)).expanduser()
        return str(path.resolve()) if path.exists() else spec
    except (OSError, RuntimeError, ValueError):
        return spec


def _named(options: LocalOptions) -> ListedModel:
    """A model that settings name: listed whatever is wrong with it."""
    try:
        spec = resolve(options.model)
        if spec.kind == "hub":
            assert spec.hub_id is not None
            cached = hub_cache() / f"models--{spec.hub_id.replace('/', '--')}"
            return next(_cached(cached, options), ListedModel(options))
        if spec.kind == "folder":
            assert spec.path is not None
            return _model_folder(spec.path, options)
        models = options.data_dir / "models"
        source = spec.path or embedded_path(models)
        if source is None:
            return _converted(ListedModel(options, EMBEDDED_FACTS), spec)
        converted = folder_for(models, spec.name, source)
        of_file = _gguf_file(source, options)
        if not converted.is_dir():
            return of_file
        model, packed = (
            _model_folder(converted, options),
            of_file.facts and of_file.facts.packed_bytes,
        )
        return replace(model, facts=model.facts and replace(model.facts, packed_bytes=packed or 0))
    except LLMError as error:
        told = error.values.get("reason")
        if isinstance(error, ModelNotFoundError):  # its own sentence can't stand within another
            told = Reason("reason-not-there")
        return ListedModel(options, trouble=told if isinstance(told, Reason) else error.reason)
    except OSError:
        return ListedModel(options, trouble=Reason("reason-file-unreadable"))
    except Exception as error:  # noqa: BLE001 - files may hold anything
        return _unreadable(options, error)


def _in_folder(folder: Path, base: LocalOptions) -> Iterator[ListedModel]:
    """Model folders and GGUF files in a folder, and in those below it."""
    seen = set[str]()
    waiting = deque([(folder.expanduser(), 0)])
    while waiting and len(seen) < _MOST_FOLDERS:
        here, depth = waiting.popleft()
        place = _place(str(here))
        if place in seen:  # a link has led here again
            continue
        seen.add(place)
        try:
            entries = sorted(filter(_speakable, os.scandir(here)), key=lambda entry: entry.name)
        except OSError as error:
            if not depth:
                reason = "reason-folder-missing" if _is_missing(error) else "reason-file-unreadable"
                yield ListedModel(replace(base, model=str(here), name=""), trouble=Reason(reason))
            continue
        names = {entry.name for entry in entries}
        if "config.json" in names:
            if any(name.endswith(".safetensors") for name in names):
                yield _model_folder(here, replace(base, model=str(here), name=""))
            continue
        # Where two ways are as short, the one without a link.
        for entry in sorted(entries, key=lambda entry: entry.is_symlink()):
            try:
                is_folder = entry.is_dir()
            except OSError:
                continue
            if is_folder:
                if depth < DEEPEST and not entry.name.startswith("."):
                    waiting.append((Path(entry.path), depth + 1))
            elif entry.name.lower().endswith(".gguf") and not _OTHER_GGUF.search(entry.name):
                yield _gguf_file(Path(entry.path), replace(base, model=entry.path, name=""))


def _speakable(entry: os.DirEntry[str]) -> bool:
    """Whether its name is text: one of other bytes can't be shown, nor sent to a browser."""
    return whole_text(entry.name) == entry.name


def _is_missing(error: OSError) -> bool:
    return isinstance(error, FileNotFoundError | NotADirectoryError)


def hub_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the hub keeps what it has downloaded.

    Source: huggingface_hub 2.4, `constants.py`.
    """
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if told := environment.get(variable):
            return Path(os.path.expandvars(told)).expanduser()
    caches = environment.get("XDG_CACHE_HOME") or "~/.cache"
    home = environment.get("HF_HOME") or os.path.join(caches, "huggingface")
    return Path(os.path.expandvars(home)).expanduser() / "hub"


def _in_hub_cache(base: LocalOptions) -> Iterator[ListedModel]:
    try:
        cached = sorted(hub_cache().glob("models--*--*"))
    except OSError:
        return
    for folder in cached:
        hub_id = folder.name.removeprefix("models--").replace("--", "/", 1)
        yield from _cached(folder, replace(base, model=hub_id, name=""))


def _cached(folder: Path, options: LocalOptions) -> Iterator[ListedModel]:
    """A chat model in the hub's cache, as `refs/main` has it. What is no chat model is left out."""
    try:
        commit = read_text(folder / "refs" / "main").strip()
        snapshot = folder / "snapshots" / commit
        if not (snapshot / "config.json").is_file():
            return
        half = any((folder / "blobs").glob("*.incomplete"))
    except (OSError, ValueError):
        return
    model = _model_folder(snapshot, options)
    if model.trouble == Reason(NO_TEMPLATE):  # it may not have been downloaded yet
        model = replace(model, trouble=None)
    if model.trouble is None:
        yield model
    elif half or model.trouble.message_id in ("reason-weights-missing", "reason-no-weights"):
        # Choosing it fetches the rest. Without any weights something else was wanted of it.
        if half or any(snapshot.glob("*.safetensors*")):
            yield replace(model, trouble=Reason(HALF_DOWNLOADED))
    elif model.trouble.message_id != "reason-unknown-type":
        yield model


# Reading a large file's head takes a moment, and nothing of it changes while the file doesn't.
_facts: dict[tuple[str, tuple[tuple[str, int, int], ...]], ListedModel] = {}


def _remembered(path: Path, options: LocalOptions, look: Callable[[], ModelFacts]) -> ListedModel:
    """Whatever is wrong with one model's files is told of that one."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        stats = [(file.name, file.stat()) for file in files if file.exists()]
    except (OSError, ValueError):
        return ListedModel(options, trouble=Reason("reason-file-unreadable"))
    key = str(path), tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
    if key not in _facts:
        try:
            facts = look()
            lacks = None if facts.has_template else Reason(NO_TEMPLATE)
            known = ListedModel(options, facts, lacks)
        except NoFactsError as error:
            known = ListedModel(options, trouble=error.reason)
        except Exception as error:  # noqa: BLE001 - files may hold anything
            known = _unreadable(options, error)
        if len(_facts) > 2 * MOST:
            _facts.clear()
        _facts[key] = known
    return replace(_facts[key], options=options)


def _unreadable(options: LocalOptions, error: Exception) -> ListedModel:
    log_fault(log, f"The files of the model {options.model!r} can't be read", error)
    return ListedModel(options, trouble=Reason("reason-part-unreadable"))


def _model_folder(folder: Path, options: LocalOptions) -> ListedModel:
    return _remembered(folder, options, lambda: facts_of_folder(folder))


def _gguf_file(file: Path, options: LocalOptions) -> ListedModel:
    if _SHARDED_GGUF.search(file.name):
        return ListedModel(options, trouble=Reason("reason-gguf-split"))
    model = _remembered(file, options, lambda: facts_of_gguf(file))
    return _converted(model, ModelSpec("gguf", display_name(options.model), file))


def _converted(model: ListedModel, spec: ModelSpec) -> ListedModel:
    """With what there is to convert of it."""
    if model.facts is None or conversion_of(spec, model.options.data_dir / "models") is not None:
        return model
    return replace(model, conversion="beside" if may_be_converted_beside(model.facts) else "alone")
