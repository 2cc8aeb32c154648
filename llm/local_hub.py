"""A model of the Hugging Face hub, brought into the hub's own cache."""

from __future__ import annotations

import threading
from pathlib import Path

from llm.embedded_model import FetchStopped
from llm.local_errors import load_error
from llm.models import WEIGHTS
from llm.types import CancelToken

_FILES = [*WEIGHTS, "*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]


def from_hub(hub_id: str, trust_remote_code: bool, cancel: CancelToken) -> Path:
    """The folder of a model, downloaded unless it is there.

    Raises:
        LLMError: why it can't be had.
        FetchStopped: cancelled. The download itself can't be ended: it goes on, on a thread that
            doesn't hold up the app's end, and what it brings lies in the hub's cache next time.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    files = [*_FILES, *(["*.py"] if trust_remote_code else [])]
    over = threading.Event()
    outcome: list[Path | BaseException] = []

    def download() -> None:
        try:
            outcome.append(Path(snapshot_download(hub_id, allow_patterns=files)))
        except BaseException as error:  # noqa: BLE001 - raised by the waiting thread
            outcome.append(error)
        finally:
            over.set()

    threading.Thread(target=download, name="hub-download", daemon=True).start()
    forget = cancel.on_cancel(over.set)
    try:
        over.wait()
    finally:
        forget()
    if not outcome:
        raise FetchStopped
    if isinstance(outcome[0], BaseException):
        raise load_error(outcome[0], hub_id) from outcome[0]
    return outcome[0]
