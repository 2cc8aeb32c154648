"""Once a day what was deleted long ago goes for good."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from llm.errors import StoreError
from llm.fault_log import log_fault

if TYPE_CHECKING:
    from llm.conversation_archive import ConversationArchive

DAY_S = 86_400.0
KEPT_DELETED_S = 30 * DAY_S
"""How long what was deleted can be brought back."""
AGAIN_S = 600.0
"""Where the database can't be had: how soon it is tried again."""

logger = logging.getLogger(__name__)


class DailyPurge:
    """Purges at its start, and once a day from then on, in the background.

    Args:
        archive: gives the archive; it may take a moment.
        kept_s: how long what was deleted is kept.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self,
        archive: Callable[[], ConversationArchive],
        kept_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._archive = archive
        self._kept_s = kept_s
        self._clock = clock
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="daily-purge", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """No more from now on; what is under way ends or is undone."""
        self._closed.set()

    def _run(self) -> None:
        wait_s = 0.0
        while not self._closed.wait(wait_s):
            wait_s = DAY_S
            try:
                gone = self._archive().purge(self._clock() - self._kept_s)
                if gone:
                    logger.info("%d deleted conversations and turns went for good", gone)
            except StoreError:
                wait_s = AGAIN_S  # the page says it where somebody looks
            except Exception as error:  # noqa: BLE001 - tomorrow it may be well again
                log_fault(logger, "Purging failed", error)
