"""Memory: giving it back, seeing that it is given back, and how much is free.

Imports no library that isn't loaded already.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import psutil

_PATIENCE_S = 5.0
_LOOK_S = 0.1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_APART_BYTES = 256 * 1024
_LEARNED_BYTES = 32 * 1024 * 1024  # the most that glibc learns by itself, on 64 bits
_NUMBER_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
_CGROUP = Path("/sys/fs/cgroup")


def forget_frames(error: BaseException) -> None:
    """Let go of all that the frames of an error hold, and those of its causes and contexts.

    An error is kept for as long as a page shows it, and with its traceback every local variable
    on its way: half a model, a cache, logits. Log where it happened before.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = None
        waiting += [one.__cause__, one.__context__]


_only_once = threading.Lock()


@contextmanager
def no_collections() -> Iterator[None]:
    """Import large libraries without the garbage collector looking at them: now, or ever.

    torch and transformers are 400,000 objects that stay for good. Looking at them stops the whole
    process for half a second, half a dozen times while they are imported and then as often as a
    model goes. A model's own few thousand take 5 ms. Only the first call does anything: later,
    there may be a model, which is to be looked at.
    """
    if not _only_once.acquire(blocking=False):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def free_memory() -> None:
    """Give back what no object holds any more. Never raises."""
    gc.collect()
    _trim()
    if "torch" not in sys.modules:
        return
    # A device whose driver has failed refuses even this, and torch may be half installed.
    with suppress(Exception):
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if torch.backends.mps.is_available():
            torch.mps.empty_cache()


@contextmanager
def weights_apart() -> Iterator[None]:
    """Have large pieces of memory come from the system itself, each to be returned by itself.

    glibc learns from the first large piece that is given back to keep the next ones in its arenas,
    of which each thread has another and whose ends it doesn't return: up to 64 MB in each.
    Afterwards it does as it would have learned: answers want their pieces quickly.

    Source: mallopt(3), M_MMAP_THRESHOLD; glibc 2.36, malloc/malloc.c (`mtrim`, `heap_trim`).
    """
    _set_thresholds(mmap_bytes=_APART_BYTES, trim_bytes=_APART_BYTES)
    try:
        yield
    finally:
        _set_thresholds(mmap_bytes=_LEARNED_BYTES, trim_bytes=2 * _LEARNED_BYTES)


def is_given_back(model: weakref.ref[object]) -> bool:
    """Wait until nothing holds a model, and give its memory back; False where something goes on.

    The frames of an answer that has just ended may hold it for a moment.
    """
    end_s = time.monotonic() + _PATIENCE_S
    free_memory()
    while model() is not None and time.monotonic() < end_s:
        time.sleep(_LOOK_S)
        free_memory()
    return model() is None


def fixed_number_bytes(dtype: str) -> int | None:
    """Bytes of a weight that isn't quantized, by the setting `dtype`; None for `auto`."""
    return _NUMBER_BYTES.get(dtype)


def native_number_bytes() -> int | None:
    """The same for `auto`: of the type that this machine multiplies.

    None until the libraries are loaded. May ask a GPU for the first time, which takes seconds.
    """
    choose = getattr(sys.modules.get("llm.local_loader"), "choose_dtype", None)
    with suppress(Exception):  # half imported, or a driver that has failed
        return int(choose("auto").itemsize) if choose else None
    return None


def packs_weights() -> bool:
    """Whether bf16 models get a packed copy of their weights here; False until it is known."""
    cpu_packs = getattr(sys.modules.get("llm.local_packed"), "cpu_packs", None)
    with suppress(Exception):  # half imported, or a driver that has failed
        import torch

        return bool(cpu_packs and cpu_packs() and not torch.accelerator.is_available())
    return False


def free_bytes() -> int:
    """What is free where a model would go: on the GPUs where there are any, else in main memory."""
    if "torch" in sys.modules:
        # A driver that has failed refuses even this, and torch may be half imported.
        with suppress(Exception):
            import torch

            if torch.cuda.is_available():
                gpus = range(torch.cuda.device_count())
                free: int = sum(int(torch.cuda.mem_get_info(gpu)[0]) for gpu in gpus)
                # torch keeps for itself what was given back within it.
                for gpu in gpus:
                    free += torch.cuda.memory_reserved(gpu) - torch.cuda.memory_allocated(gpu)
                return free
    return free_main_bytes()


def free_main_bytes() -> int:
    """What is free of main memory."""
    available = int(psutil.virtual_memory().available)
    in_group = _free_in_group()
    return available if in_group is None else min(available, in_group)


def _free_in_group() -> int | None:
    """What a container's limit leaves; None where there is none.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html, memory interface files. Pages of
    files that haven't been used for long are counted, and given back when they are needed.
    """
    try:
        limit = int((_CGROUP / "memory.max").read_text())  # "max" where there is none
        used = int((_CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return max(0, limit - used + int(stat["inactive_file"]))
    except (OSError, ValueError, KeyError):
        return None


def _trim() -> None:
    """Have glibc return free pages to the system: it keeps many small ones for itself."""
    if (libc := _glibc()) is not None:
        libc.malloc_trim(0)


def _set_thresholds(mmap_bytes: int, trim_bytes: int) -> None:
    if (libc := _glibc()) is not None:
        libc.mallopt(_M_MMAP_THRESHOLD, mmap_bytes)
        libc.mallopt(_M_TRIM_THRESHOLD, trim_bytes)


@cache
def _glibc() -> ctypes.CDLL | None:
    """The C library; None where it is another one, which has ways of its own."""
    if not sys.platform.startswith("linux"):
        return None
    with suppress(OSError):
        libc = ctypes.CDLL(None)
        if hasattr(libc, "malloc_trim") and hasattr(libc, "mallopt"):
            return libc
    return None
