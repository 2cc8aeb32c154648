"""torch and transformers are imported by one thread at a time.

transformers puts another module in its own place when it is imported: meanwhile
`from transformers import …` fails in any other thread.
"""

from __future__ import annotations

import os
import threading

from llm.local_memory import no_collections

_lock = threading.Lock()


def import_libraries() -> None:
    """Import them, which takes seconds the first time; afterwards any thread may.

    Thread-safety: may be called from any thread.

    Raises:
        Exception: what the import of a library raises.
    """
    with _lock:
        wait_without_spinning()
        with no_collections():
            import llm.local_batch_start
            import llm.local_generation
            import llm.local_loader  # noqa: F401


def wait_without_spinning() -> None:
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
