"""A face other than the page, with a note of when the backend began and ended each answer.

    BENCH_STREAM_LOG=log.jsonl python -m benchmarks.launch_face llm "please answer"

As launch.py does it for Streamlit: the face isn't touched.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from benchmarks.launch import LOG_VARIABLE, keep_times
from llm.scripted_backend import ScriptedBackend

if __name__ == "__main__":
    keep_times(ScriptedBackend, Path(os.environ[LOG_VARIABLE]))
    module = sys.argv.pop(1)
    sys.argv[0] = module
    runpy.run_module(module, run_name="__main__", alter_sys=True)
