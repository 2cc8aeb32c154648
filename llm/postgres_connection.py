"""A connection to PostgreSQL that doesn't wait for ever.

The server's own limits on time (`lock_timeout`, `statement_timeout`) hold only while it is there to
keep them. One that stands still, or lies behind a network that swallows everything, says nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

PATIENCE_S = 3.0
"""How long a server that says nothing at all is waited for; longer than its own limits."""

T = TypeVar("T")


class PatientConnection(psycopg.Connection[Any]):
    """psycopg's, each of whose waits ends.

    Attributes:
        patience_s: the longest that a statement may take; None for as long as it takes.
    """

    patience_s: float | None = PATIENCE_S

    def wait(
        self,
        gen: Generator[Any, Any, T],
        interval: float = 0.1,
        timeout: float | None = None,
    ) -> T:
        """As psycopg's.

        Raises:
            psycopg.OperationalError: nothing came for too long; the connection is closed.
        """
        try:
            return super().wait(gen, interval, self.patience_s if timeout is None else timeout)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()  # in the middle of something, and of no more use
            raise
