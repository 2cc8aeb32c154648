"""Where answers are kept to be given again, by the settings. Loads only what that needs."""

from __future__ import annotations

from llm.cache_types import AnswerStore
from llm.settings import Settings


def open_store(settings: Settings) -> AnswerStore:
    """The Redis that settings or `REDIS_URL` name, else the file beside the conversations.

    Nothing is opened yet: what is wrong with it is told by the store's methods.

    Raises:
        CacheStoreError: `REDIS_URL` is no address of a Redis.
    """
    max_bytes = settings.cache_max_mb * 1_000_000
    if url := settings.answers_url():
        from llm.cache_redis import RedisAnswerStore

        return RedisAnswerStore(url, max_bytes)
    from llm.cache_sqlite import SqliteAnswerStore

    return SqliteAnswerStore(settings.answers_file(), max_bytes)
