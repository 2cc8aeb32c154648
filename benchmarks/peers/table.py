"""The figures beside each other, as Markdown: a column a peer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.peers.measure import GRACE_S, PeerFigures
from benchmarks.table import align


def peers_table(figures: Sequence[PeerFigures], titles: dict[str, str]) -> str:
    """One stream's table.

    Args:
        figures: of one stream, a peer each.
        titles: the columns' heads, by peer.
    """
    rows: list[tuple[str, Callable[[PeerFigures], str]]] = [
        ("whole text in the page", _whole),
        ("characters in the page", lambda f: f"{f.chars:,}"),
        ("reader kept at the end", lambda f: _yes(f.followed)),
        ("behind the stream at its end", _behind),
        ("first text", lambda f: _or_dash(f.first_text_s, "{:.2f} s")),
        ("frames over 50 ms", lambda f: f"{f.long_frames} of {f.frames}"),
        ("longest frame", lambda f: f"{f.longest_frame_ms:,.0f} ms"),
        ("key delay, p75", _key_delay),
        ("to the browser", lambda f: _or_dash(f.sent_mb, "{:.2f} MB")),
        ("server CPU", lambda f: f"{f.server_cpu_s:.1f} s"),
    ]
    lines = [["", *(titles[f.peer] for f in figures)]]
    lines += [[name, *(show(f) for f in figures)] for name, show in rows]
    return align(lines)


def stream_title(tokens: int, rate: float) -> str:
    return f"{tokens:,} tokens at {rate:g} tok/s"


def _whole(f: PeerFigures) -> str:
    return "yes" if f.complete else f"no: {f.blocks} of {f.all_blocks} blocks"


def _behind(f: PeerFigures) -> str:
    return f"over {GRACE_S:.0f} s" if f.behind_s is None else f"{f.behind_s:.2f} s"


def _key_delay(f: PeerFigures) -> str:
    # The question's own letters are typed at once.
    return "input is closed" if f.typed < f.keys / 2 else _or_dash(f.key_p75_ms, "{:,.0f} ms")


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _or_dash(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)
