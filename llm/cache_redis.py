"""The answer cache in a Redis that several machines may share.

Redis 6.2 or newer, or Valkey; not a cluster. What belongs together is written by one script, which
Redis runs as a whole; none is made of what people wrote.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry

from llm.cache_packing import (
    Listed,
    clearing_name,
    listed,
    pack_answer,
    pack_candidate,
    pack_decision,
    pack_listed,
    pack_rejection,
    possible,
    to_bytes,
    to_text,
    unpack_answer,
    unpack_candidate,
    unpack_decision,
    unpack_listed,
    unpack_rejection,
)
from llm.cache_redis_scripts import SCRIPTS
from llm.cache_types import (
    CLEARING_KEPT_S,
    CLOCK_AHEAD_S,
    DECISIONS_KEPT,
    DECISIONS_KEPT_S,
    REJECTIONS_KEPT,
    REJECTIONS_KEPT_S,
    AnswerStore,
    CacheBusyError,
    CachedAnswer,
    CacheEntry,
    CacheKey,
    CacheStoreError,
    CacheTotals,
    Candidate,
    Decision,
    DecisionCount,
    Rejection,
)
from llm.served_values import keepable

PREFIX = "steady-chat:cache:3:"
"""Of every key, with the version of what is kept. Another version's keys are left to expire."""

PATIENCE_S = 0.04
"""How long to wait for a connection, and for the next bytes of a reply."""

_LEFT_ALONE_S = 1.0
_LONGEST_MS = 10 * 365 * 86_400_000
_AT_ONCE = 200
_MOST = 1_000_000
_MOST_CONNECTIONS = 64
# Bytes that Redis 7 takes beside the strings, for 64 bits: a place in a hash with its share of the
# table, a node of a sorted set, an empty hash as a key's value.
_SLOT, _NODE, _HASH = 44, 53, 112


class RedisAnswerStore:
    """An `AnswerStore` in Redis.

    After a failure of the connection nothing is tried for a second, so that a Redis that is down
    costs a question nothing.

    Args:
        url: `redis://`, `rediss://` or `unix://`; it may hold a password.
        max_bytes: the size cap.
        patience_s: how long to wait for a connection, and for the next bytes of a reply.
        clock: seconds that never go back.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self,
        url: str,
        max_bytes: int,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._failed: tuple[str, float] | None = None
        self._pool = _pool(url, patience_s)
        self._redis = redis.Redis(connection_pool=self._pool)
        self._own = threading.local()
        self._scripts = {
            name: self._redis.register_script(source) for name, source in SCRIPTS.items()
        }

    # -- answers --

    def get(self, digest: str, scope: str, now_s: float) -> CachedAnswer | None:
        """As in `AnswerStore`."""
        if not possible(scope, digest):
            return None
        # Where Redis threw out its place in the index it can't be cleared, so it isn't given either.
        with self._told(), self._redis.pipeline(transaction=False) as pipeline:
            pipeline.zscore(_key("scope", scope), digest)
            pipeline.hget(_key("answer", scope, digest), "body")
            listed_s, body = pipeline.execute()
        if listed_s is None or listed_s > now_s + CLOCK_AHEAD_S or body is None:
            return None
        answer = unpack_answer(body, digest, scope)
        return answer if answer is not None and answer.expires_s > now_s else None

    def put(
        self,
        answer: CachedAnswer,
        vector: bytes = b"",
        embedding: str = "",
        *,
        begun_s: float | None = None,
    ) -> None:
        """As in `AnswerStore`."""
        begun_s = answer.created_s if begun_s is None else begun_s
        key = answer.key
        if not possible(key.scope, key.digest, key.partition):
            raise CacheStoreError("no key of an answer")
        body, meta = pack_answer(answer), pack_listed(listed(answer))
        candidate = pack_candidate(
            Candidate(key.digest, answer.question, vector, embedding),
            answer.created_s,
            answer.expires_s,
        )
        size = _size(key, body, meta, candidate)
        lives_s = answer.expires_s - answer.created_s
        if size > self._max_bytes or not lives_s > 0:
            self.delete(key.digest, key.scope)
            return
        self._run(
            "put",
            key.scope,
            key.digest,
            key.partition,
            size,
            math.ceil(min(lives_s * 1000, _LONGEST_MS)),
            answer.created_s,
            answer.expires_s,
            self._max_bytes,
            _AT_ONCE,
            answer.created_s + CLOCK_AHEAD_S,
            body,
            meta,
            candidate,
            begun_s,
            CLEARING_KEPT_S,
            to_bytes(clearing_name(answer.model)),
        )

    def embed(self, partition: str, scope: str, candidate: Candidate) -> None:
        """As in `AnswerStore`."""
        if possible(scope, partition, candidate.digest):
            embedding = to_bytes(candidate.embedding)
            self._run("embed", scope, partition, candidate.digest, embedding, candidate.vector)

    def used(self, digest: str, scope: str, now_s: float) -> None:
        """As in `AnswerStore`."""
        if possible(scope, digest):
            self._run("used", scope, digest, now_s)

    def delete(self, digest: str, scope: str) -> bool:
        """As in `AnswerStore`."""
        return possible(scope, digest) and bool(self._run("delete", scope, digest))

    def candidates(self, partition: str, scope: str, now_s: float) -> Sequence[Candidate]:
        """As in `AnswerStore`."""
        if not possible(scope, partition):
            return []
        with self._told():
            packed: Any = self._redis.hgetall(_key("questions", scope, partition))
        told = (unpack_candidate(data, digest.decode(), now_s) for digest, data in packed.items())
        found = sorted((each for each in told if each is not None), key=lambda each: -each[0])
        return [candidate for _, candidate in found]

    # -- what a person sees of it --

    def entries(
        self, scope: str, now_s: float, limit: int, skip: int = 0, text: str = ""
    ) -> Sequence[CacheEntry]:
        """As in `AnswerStore`. A text is looked for in many short steps, as in `clear`."""
        limit, skip = _within(limit), _within(skip)
        if not possible(scope) or not limit:
            return []
        if text:
            having = self._having(scope, now_s, text.casefold())
            return list(islice(having, skip, skip + limit))
        entries = []
        for digest, size, partition, used_s, meta, hits in self._run(
            "entries", scope, now_s, now_s + CLOCK_AHEAD_S, limit, skip
        ):
            shown = unpack_listed(meta)
            if shown is not None:
                key = CacheKey(digest.decode(), partition.decode(), scope)
                entries.append(_entry(key, shown, int(size), float(used_s), int(hits)))
        return entries

    def _having(self, scope: str, now_s: float, folded: str) -> Iterator[CacheEntry]:
        """The entries with that in their question.

        Read here: Lua knows the case of English letters only.
        """
        with self._told():
            used: Any = self._redis.zrevrangebyscore(
                _key("scope", scope), now_s + CLOCK_AHEAD_S, "-inf", withscores=True
            )
        escaped = json.dumps(folded, ensure_ascii=False)[1:-1]
        for start in range(0, len(used), _AT_ONCE):
            some = used[start : start + _AT_ONCE]
            told = self._run("shown", scope, *(digest for digest, _ in some))
            for (digest, used_s), (meta, hits, record) in zip(some, told, strict=True):
                # First in the bytes as they are: unpacking them all takes several times as long.
                if escaped not in meta.decode(errors="replace").casefold():
                    continue
                shown = unpack_listed(meta)
                if shown is None or shown.expires_s <= now_s:
                    continue
                if folded in shown.question.casefold():
                    size, _, partition = record.decode().partition(" ")
                    key = CacheKey(digest.decode(), partition, scope)
                    yield _entry(key, shown, int(size), used_s, int(hits))

    def totals(self, scope: str, now_s: float) -> CacheTotals:
        """As in `AnswerStore`."""
        if not possible(scope):
            return CacheTotals(0, 0)
        return CacheTotals(*map(int, self._run("totals", scope, now_s, now_s + CLOCK_AHEAD_S)))

    def clear(
        self,
        scope: str,
        now_s: float,
        *,
        model: str | None = None,
        before_s: float | None = None,
    ) -> int:
        """As in `AnswerStore`. In many short steps: others are served in between."""
        if not possible(scope):
            return 0
        at_s = now_s if before_s is None else min(now_s, before_s)
        self._run(
            "cleared", scope, to_bytes(clearing_name(model)), at_s, math.ceil(CLEARING_KEPT_S)
        )
        with self._told():
            digests: Any = self._redis.zrange(_key("scope", scope), 0, -1)
        gone = 0
        for start in range(0, len(digests), _AT_ONCE):
            some = digests[start : start + _AT_ONCE]
            if model is not None or before_s is not None:
                some = self._matching(scope, some, model, before_s)
            gone += int(self._run("delete", scope, *some)) if some else 0
        if model is None and before_s is None:
            self._run("clear_log", scope)
        return gone

    def _matching(
        self, scope: str, digests: Sequence[bytes], model: str | None, before_s: float | None
    ) -> Sequence[bytes]:
        with self._told(), self._redis.pipeline(transaction=False) as pipeline:
            for digest in digests:
                pipeline.hget(_key("answer", scope, digest.decode()), "meta")
            metas = pipeline.execute()
        matching = []
        for digest, meta in zip(digests, metas, strict=True):
            shown = unpack_listed(meta)
            if shown is not None and (
                (model is None or shown.model == keepable(model))
                and (before_s is None or shown.created_s < before_s)
            ):
                matching.append(digest)
        return matching

    # -- what a person said of it, and the log --

    def reject(self, partition: str, scope: str, rejection: Rejection) -> None:
        """As in `AnswerStore`."""
        if not possible(scope, partition):
            raise CacheStoreError("no key of a rejection")
        packed = pack_rejection(rejection)
        self._run("reject", scope, partition, REJECTIONS_KEPT, int(REJECTIONS_KEPT_S), packed)

    def rejections(self, partition: str, scope: str) -> Sequence[Rejection]:
        """As in `AnswerStore`."""
        if not possible(scope, partition):
            return []
        with self._told():
            packed: Any = self._redis.lrange(_key("rejections", scope, partition), 0, -1)
        found = [unpacked for data in packed if (unpacked := unpack_rejection(data)) is not None]
        found.sort(key=lambda rejection: -rejection.at_s)
        # Redis lets them go a year after the last; those before it are a year older than that.
        return [each for each in found if each.at_s >= found[0].at_s - REJECTIONS_KEPT_S]

    def note(self, decision: Decision) -> None:
        """As in `AnswerStore`."""
        if not possible(decision.scope):
            raise CacheStoreError("no scope of a decision")
        self._run(
            "note",
            decision.scope,
            to_bytes(decision.decision_id),
            decision.at_s,
            decision.at_s - DECISIONS_KEPT_S,
            DECISIONS_KEPT,
            int(DECISIONS_KEPT_S),
            pack_decision(decision),
            "" if decision.judged is None else int(decision.judged),
            decision.kind,
        )

    def decisions(self, scope: str, limit: int = DECISIONS_KEPT) -> Sequence[Decision]:
        """As in `AnswerStore`."""
        return self._decisions("order", scope, limit)

    def near(self, scope: str, limit: int) -> Sequence[Decision]:
        """As in `AnswerStore`."""
        return self._decisions("near", scope, limit)

    def counts(self, scope: str) -> Sequence[DecisionCount]:
        """As in `AnswerStore`."""
        if not possible(scope):
            return []
        with self._told():
            told: Any = self._redis.hgetall(_key("counts", scope))
            found = []
            for name, number in told.items():
                what, kind, reason, model = to_text(name).split("\n", 3)
                if what == "n" and int(number) > 0:
                    saved = (float(told.get(letter + name[1:], 0)) for letter in (b"t", b"s"))
                    tokens, seconds = (max(each, 0.0) for each in saved)
                    found.append(
                        DecisionCount(kind, reason, model, int(number), round(tokens), seconds)
                    )
        return found

    def _decisions(self, order: str, scope: str, limit: int) -> Sequence[Decision]:
        limit = _within(limit)
        if not possible(scope) or not limit:
            return []
        found = (
            unpack_decision(body, scope, None if not judged else judged == b"1")
            for body, judged in self._run("decisions", scope, limit, order)
        )
        return [decision for decision in found if decision is not None]

    def judge(self, decision_id: str, scope: str, same: bool) -> None:
        """As in `AnswerStore`."""
        if possible(scope):
            self._run("judge", scope, to_bytes(decision_id), int(same))

    def together(self, writes: Sequence[Callable[[AnswerStore], object]]) -> None:
        """As in `AnswerStore`. In one pipeline: where one fails the others are done."""
        with self._told(aside=True), self._redis.pipeline(transaction=False) as pipeline:
            self._own.pipeline = pipeline
            try:
                for write in writes:
                    write(self)
            finally:
                self._own.pipeline = None
            pipeline.execute()

    def close(self) -> None:
        """As in `AnswerStore`."""
        with suppress(redis.RedisError, OSError):
            self._redis.close()
            self._pool.disconnect()

    # -- asking Redis --

    def _run(self, name: str, *arguments: Any) -> Any:
        pipeline = getattr(self._own, "pipeline", None)  # of `together`; else it is done at once
        with self._told():
            return self._scripts[name](args=[PREFIX, *map(_argument, arguments)], client=pipeline)

    @contextmanager
    def _told(self, *, aside: bool = False) -> Generator[None]:
        failed = self._failed
        if failed is not None and self._clock() < failed[1]:
            raise CacheStoreError(f"Redis: {failed[0]}")
        try:
            yield
        except (redis.RedisError, OSError, ValueError, ArithmeticError, TypeError) as fault:
            name = _name(fault)
            if aside and isinstance(fault, redis.TimeoutError):  # nobody waits for these
                raise CacheBusyError(f"Redis: {name}") from None
            if isinstance(fault, redis.ConnectionError | redis.TimeoutError | OSError):
                self._failed = (name, self._clock() + _LEFT_ALONE_S)
            # Not `from fault`: its text holds the address.
            raise CacheStoreError(f"Redis: {name}") from None
        self._failed = None


class _Hasty:
    """A connection that is made in time or not at all.

    A name's address has no limit on time, and several addresses have one each; so it is made on a
    thread of its own, which ends by itself.
    """

    socket_connect_timeout: float | None

    def _connect(self) -> Any:
        made: list[Any] = []
        lock, late = threading.Lock(), False

        def connect() -> None:
            try:
                result: Any = super(_Hasty, self)._connect()  # type: ignore[misc]
            except BaseException as fault:  # noqa: BLE001 - raised below
                result = fault
            with lock:
                if not late:
                    made.append(result)
                elif not isinstance(result, BaseException):
                    result.close()

        thread = threading.Thread(target=connect, daemon=True, name="redis-connect")
        thread.start()
        thread.join(self.socket_connect_timeout)
        with lock:
            late = not made
        if late:
            raise TimeoutError
        if isinstance(made[0], BaseException):
            raise made[0]
        return made[0]


def _pool(url: str, patience_s: float) -> redis.ConnectionPool:
    """Connections that wait for so long at most and try once.

    Raises:
        CacheStoreError: that is no address of a Redis.
    """
    try:
        told: dict[str, Any] = dict(parse_url(url))  # type: ignore[no-untyped-call]
    except ValueError:
        raise CacheStoreError("Redis: its address isn't one") from None
    kind = told.pop("connection_class", redis.Connection)
    return redis.ConnectionPool(
        **told
        | {
            "connection_class": type("_HastyConnection", (_Hasty, kind), {}),
            "socket_timeout": patience_s,
            "socket_connect_timeout": patience_s,
            "retry": Retry(NoBackoff(), 0),
            "max_connections": _MOST_CONNECTIONS,
            # RESP2 and no names: nothing is said before the first command but the password.
            "protocol": 2,
            "driver_info": None,
            "decode_responses": False,
        }
    )


def _name(fault: BaseException) -> str:
    """What went wrong, by Redis's own code where it has one; never an address or an argument."""
    code = (
        re.match(r"[A-Z]{3,20}\b", str(fault)) if isinstance(fault, redis.ResponseError) else None
    )
    return f"{type(fault).__name__} {code[0]}" if code else type(fault).__name__


def _key(kind: str, *parts: str) -> str:
    return f"{PREFIX}{kind}:{':'.join(parts)}"


def _argument(value: Any) -> Any:
    # Redis takes `inf` and all digits of a float.
    return repr(value) if isinstance(value, float) else value


def _within(number: int) -> int:
    return min(max(number, 0), _MOST)


def _entry(key: CacheKey, shown: Listed, size: int, used_s: float, hits: int) -> CacheEntry:
    return CacheEntry(
        key=key,
        question=shown.question,
        opening=shown.opening,
        chars=shown.chars,
        size=size,
        model=shown.model,
        server=shown.server,
        created_s=shown.created_s,
        expires_s=shown.expires_s,
        used_s=used_s,
        hits=hits,
    )


def _size(key: CacheKey, body: bytes, meta: bytes, candidate: bytes) -> int:
    """Bytes of Redis's memory that an entry takes, its places in the indexes included."""
    digest = len(key.digest)
    member = len(key.scope) + 1 + digest
    answer = _string(len(PREFIX) + len("answer:") + member) + _HASH + 2 * _SLOT
    fields = 3 * _SLOT + 4 * _string(4) + _string(len(body)) + _string(len(meta))
    record = _SLOT + _string(member) + _string(len(key.partition) + 6)
    ordered = 3 * (_SLOT + _NODE) + 2 * _string(member) + _string(digest)
    question = _SLOT + _string(digest) + _string(len(candidate))
    return answer + fields + record + ordered + question


def _string(length: int) -> int:
    """Bytes that Redis takes for a string: its head, and what the allocator rounds it up to.

    Source: https://github.com/redis/redis/blob/7.0/src/sds.h and the size classes of
    https://jemalloc.net/jemalloc.3.html
    """
    wanted = length + 1 + (3 if length < 1 << 8 else 5 if length < 1 << 16 else 9)
    step = 16 if wanted <= 128 else 1 << ((wanted - 1).bit_length() - 3)
    return 8 if wanted <= 8 else -(-wanted // step) * step
