"""From what was asked for to a model that is warm: every step of the loading thread, in order."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from llm.embedded_model import FetchStopped
from llm.errors import LLMError, ModelError
from llm.local_source import Report, discard_if_damaged, obtain
from llm.models import ModelKind, resolve
from llm.types import BackendPhase, CancelToken, GenerationRequest, Message, SamplingParams

if TYPE_CHECKING:
    from llm.local_backend import LocalOptions
    from llm.local_loader import LoadedModel

_WARM_UP = GenerationRequest((Message("user", "Hi"),), SamplingParams(max_tokens=2, seed=0))


def steps(model: str) -> tuple[BackendPhase, ...]:
    """The phases that a model goes through, in order; none where its spec is wrong."""
    try:
        kind = resolve(model).kind
    except (LLMError, OSError):  # told when it is tried
        return ()
    before: dict[ModelKind, tuple[BackendPhase, ...]] = {
        "embedded": ("fetching", "converting"),
        "gguf": ("converting",),
        "hub": ("fetching",),
        "folder": (),
    }
    return (*before[kind], "loading", "warming")


def get_ready(options: LocalOptions, cancel: CancelToken, report: Report) -> LoadedModel:
    """Fetch, convert, load and warm up.

    Raises:
        FetchStopped: cancelled.
        Exception: whatever went wrong; `load_error` has the sentence.
    """
    _wait_without_spinning()
    # Importing the libraries takes seconds, and so may what comes before they are needed. They are
    # wanted where the model isn't there, too: without them nobody knows what others would take.
    threading.Thread(target=_import_libraries, name="import-torch", daemon=True).start()
    spec = resolve(options.model)
    folder = obtain(spec, options.data_dir, options.trust_remote_code, cancel, report)
    report("loading", None)
    from llm.local_generation import generate, watch_for_stop
    from llm.local_loader import load_model
    from llm.local_progress import ReadingStopped, reading_weights

    try:
        with reading_weights(cancel, lambda done: report("loading", done)):
            loaded = load_model(folder, options.name or spec.name, options)
    except ReadingStopped:
        raise FetchStopped from None
    except ModelError:
        if spec.kind in ("embedded", "gguf"):
            discard_if_damaged(folder, cancel)
        raise
    watch_for_stop(loaded.model)
    report("warming", None)
    for _ in generate(loaded, _WARM_UP, cancel):
        pass
    return loaded


def _wait_without_spinning() -> None:
    """Let torch's CPU threads sleep while they wait for each other, unless the person chose.

    By default they spin. Beside a busy browser, or a second answer, they then burn the very time
    that the thread they wait for needs: measured on 2 cores beside two busy processes, 0.4 tok/s
    spinning and 7.2 asleep; two answers at once, 3.0 and 11.5. OpenMP reads this when torch is
    first imported, which is why it is set here.

    Source: https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html; KMP_BLOCKTIME is
    the same for LLVM's and Intel's OpenMP.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("KMP_BLOCKTIME", "0")


def _import_libraries() -> None:
    # The loading thread imports them too, and there a failure is told.
    with suppress(Exception):
        import llm.local_loader  # noqa: F401
