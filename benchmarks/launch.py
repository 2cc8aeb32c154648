"""`streamlit run`, with a note of when the backend began and ended each answer.

    BENCH_STREAM_LOG=log.jsonl python -m benchmarks.launch run streamlit_app.py --server.port 8501

The app isn't touched: the `stream` of the scripted backend and of the vLLM client is wrapped
before Streamlit starts, in the same process, for the app and for the comparison pages alike. So
"the stream ended" means the same for all of them: the last piece was handed over.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from streamlit.web.cli import main

from llm.scripted_backend import ScriptedBackend
from llm.types import CancelToken, Delta, Finish, GenerationRequest
from llm.vllm_backend import VllmBackend

LOG_VARIABLE = "BENCH_STREAM_LOG"


def keep_times(backend: type[ScriptedBackend] | type[VllmBackend], log: Path) -> None:
    """Write when each of this backend's answers had its first piece, and when its last."""
    stream = backend.stream

    def note(event: str, asked: str, at: float, pieces: int) -> None:
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, "asked": asked, "at": at, "pieces": pieces}))
            file.write("\n")

    def timed(
        self: Any, request: GenerationRequest, cancel: CancelToken
    ) -> Iterator[Delta | Finish]:
        asked = request.messages[-1].content
        at, pieces = time.time(), 0
        try:
            with closing(stream(self, request, cancel)) as items:
                for item in items:
                    if isinstance(item, Delta):
                        at = time.time()
                        pieces += 1
                        if pieces == 1:
                            note("first", asked, at, pieces)
                    yield item
        finally:
            note("last", asked, at, pieces)

    backend.stream = timed  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    for kind in (ScriptedBackend, VllmBackend):
        keep_times(kind, Path(os.environ[LOG_VARIABLE]))
    sys.exit(main(prog_name="streamlit"))
