"""Where the tests keep the embedded model, fetched and converted once for all runs."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def model_data_dir() -> Path:
    """`STEADY_CHAT_TEST_DATA`, else a folder in the user's cache."""
    named = os.environ.get("STEADY_CHAT_TEST_DATA")
    return Path(named) if named else user_cache_path("steady-chat-tests", appauthor=False)
