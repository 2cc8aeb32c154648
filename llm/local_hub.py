"""A model of the Hugging Face hub, brought into the hub's own cache."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from llm.child_lines import environment, read_error, read_line
from llm.errors import HubDownloadError
from llm.models import WEIGHTS
from llm.types import CancelToken
from llm.wheel_download import FetchStopped

_FILES = [*WEIGHTS, "*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
_TIDY_S = 5.0
"""How long a download that is cancelled may take to remove what it had half of."""


def from_hub(hub_id: str, trust_remote_code: bool, cancel: CancelToken) -> Path:
    """The folder of a model, downloaded unless it is there. A cancel ends the download.

    Raises:
        LLMError: why it can't be had.
        FetchStopped: cancelled.
    """
    files = [*_FILES, *(["*.py"] if trust_remote_code else [])]
    process = subprocess.Popen(
        [sys.executable, "-m", "llm.local_hub_download", hub_id, *files],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    stdin = process.stdin
    assert stdin is not None
    assert process.stdout is not None
    impatient = threading.Timer(_TIDY_S, process.kill)
    impatient.daemon = True

    def stop() -> None:
        stdin.close()
        impatient.start()

    forget = cancel.on_cancel(stop)
    said: dict[str, object] = {}
    try:
        with process.stdout:
            for line in process.stdout:
                said = read_line(line) or said
    finally:
        forget()
        impatient.cancel()
        stdin.close()
        process.kill()  # it has said all, or closed its stdout as it ended
        process.wait()
    if cancel.cancelled:
        raise FetchStopped
    if "folder" in said:
        return Path(str(said["folder"]))
    raise read_error(said) or HubDownloadError(model=hub_id)
