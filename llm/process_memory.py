"""What this process takes of the machine's memory."""

from __future__ import annotations


def memory_bytes() -> int:
    """Resident memory, as the system counts it."""
    import psutil

    return int(psutil.Process().memory_info().rss)
