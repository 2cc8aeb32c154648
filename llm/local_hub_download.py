"""A model of the hub into the hub's own cache: `python -m llm.local_hub_download OWNER/NAME FILES…`.

It runs in a process of its own: huggingface_hub has no way to end a download, and much of one runs
in threads that nobody outside can stop. On stdout it says, as a JSON line, `{"folder": …}` or an
error (`llm.child_lines`). When its stdin closes it ends, and what it had half of goes: no other
download can use that, each begins a file of its own.

Source: huggingface_hub 2.4, `file_download.py` (`_download_to_tmp_and_move`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from llm.child_lines import end_with_the_app, say, say_error
from llm.local_errors import load_error


def download(hub_id: str, files: list[str]) -> Path:
    """The model's folder. Raises what the hub's library raises."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    blobs = Path(constants.HF_HUB_CACHE) / f"models--{hub_id.replace('/', '--')}" / "blobs"
    others = set(blobs.glob("*.incomplete"))

    def tidy_up() -> None:
        for half in set(blobs.glob("*.incomplete")) - others:
            half.unlink(missing_ok=True)

    end_with_the_app(tidy_up)
    return Path(snapshot_download(hub_id, allow_patterns=files))


def main(arguments: list[str]) -> int:
    """Download; the process's exit code. 0 there, 1 failed and said why."""
    hub_id, *files = arguments
    try:
        say(folder=str(download(hub_id, files)))
    except Exception as error:  # noqa: BLE001 - the tree is the boundary
        say_error(load_error(error, hub_id))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
