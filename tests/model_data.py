"""Where the tests keep what is fetched and made once for all runs."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_dir() -> Path:
    """A folder in the user's cache."""
    return user_cache_path("steady-chat-tests", appauthor=False)


def model_data_dir() -> Path:
    """The embedded model, fetched and converted: `STEADY_CHAT_TEST_DATA`, else the cache."""
    named = os.environ.get("STEADY_CHAT_TEST_DATA")
    return Path(named) if named else cache_dir()
