"""The device that torch computes on: its name, and what is allocated on it.

torch is imported by the functions.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.table import Row, row


def device_kind() -> str:
    """`cuda`, `mps` or `cpu`, whichever the app's loader would take."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def free() -> None:
    """Give back what no object holds any more."""
    from llm.local_memory import free_memory

    free_memory()


def reset_peak() -> None:
    """Count the most from now on, where that can be counted anew."""
    if device_kind() == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()


def allocated_gb() -> float | None:
    """What is allocated on the device; None where it can't be told."""
    if device_kind() != "cuda":
        return None
    import torch

    return float(torch.cuda.memory_allocated() / 1e9)


def peak_gb() -> float | None:
    """The most that was allocated since `reset_peak`; on a CPU, the process's most of all."""
    if device_kind() == "cuda":
        import torch

        return float(torch.cuda.max_memory_allocated() / 1e9)
    if sys.platform == "win32":
        return None
    import resource

    # Kilobytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def memory_row(figure: str, gb: float | None) -> Row:
    """A row of gigabytes; a dash where they can't be told."""
    return row(figure, {"app": gb}, "{:.2f} GB".format)


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    import torch

    packages = {}
    for name in ("torch", "transformers", "accelerate", "bitsandbytes", "torchao", "flash-attn"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    cuda = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if cuda else device_kind(),
        "device_memory_gb": torch.cuda.get_device_properties(0).total_memory / 1e9
        if cuda
        else None,
        "cuda": torch.version.cuda if cuda else None,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": packages,
    }
