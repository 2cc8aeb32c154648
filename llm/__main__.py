"""`python -m llm "question"`: begins `llm/terminal.py`."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    # Half a second of imports comes first: Ctrl-C then ends it at once, and shows no traceback.
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    from llm.terminal import run

    run(sys.argv[1:])
