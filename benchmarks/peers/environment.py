"""Each peer's virtual environment, made once, with exactly the versions of its pins.

They can't share the app's: each wants its own web server, and all of them other versions. They lie
in the user's cache, so a fresh clone finds them again; `STEADY_CHAT_BENCH_PEERS` names another
folder. All three together take 3.5 GB, nearly all of it Open WebUI's.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

PINS = Path(__file__).parent
_STAMP = "whole"


def peer_bin(name: str) -> Path:
    """The folder with the programs of the peer `name`, installed first where it isn't yet.

    Two at once are no harm: the second waits. An environment that was left half made, or made of
    other pins or by another Python, is made anew.

    Raises:
        RuntimeError: pip failed; the message has its last words.
    """
    folder = peers_dir() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(folder.name + ".lock")):
        if not _is_whole(folder, name):
            _make(folder, name)
    return folder / "bin"


def peers_dir() -> Path:
    """`STEADY_CHAT_BENCH_PEERS`, else a folder in the user's cache."""
    named = os.environ.get("STEADY_CHAT_BENCH_PEERS")
    return Path(named) if named else user_cache_path("steady-chat-tests", appauthor=False) / "peers"


def pins_file(name: str) -> Path:
    return PINS / f"{name}.txt"


def pins(name: str) -> dict[str, str]:
    """The version of each package.

    Raises:
        ValueError: a line that pins no exact version.
    """
    told = {}
    for line in pins_file(name).read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r"([\w.-]+)==([\w.!]+)", line)
        if match is None:
            raise ValueError(f"{pins_file(name).name}: “{line}” pins no exact version")
        told[match[1].lower()] = match[2]
    return told


def _make(folder: Path, name: str) -> None:
    print(
        f"Installing {name} {pins(name)[name]} into {folder}, once …", file=sys.stderr, flush=True
    )
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "--no-input", "install"]
    command += ["--requirement", str(pins_file(name))]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"pip install of {name} failed:\n{done.stdout[-3000:]}")
    (folder / _STAMP).write_text(_recipe(name), encoding="utf-8")


def _is_whole(folder: Path, name: str) -> bool:
    try:
        return (folder / _STAMP).read_text(encoding="utf-8") == _recipe(name)
    except OSError:
        return False


def _recipe(name: str) -> str:
    made_of = [hashlib.sha256(pins_file(name).read_bytes()).hexdigest(), sys.base_prefix]
    return "\n".join([*made_of, sys.version])
