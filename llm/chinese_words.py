"""Chinese text as words: the one place that knows rjieba.

rjieba is jieba's algorithm in Rust with its dictionary inside: nothing is downloaded, and nothing
has to be loaded first.
"""

from __future__ import annotations


def segmented(text: str) -> list[str]:
    """The words of a text, marks and spaces among them; joined they are the text again.

    Thread-safety: may be called from any thread.
    """
    import rjieba

    words: list[str] = rjieba.cut(text)
    return words


def is_person(word: str) -> bool:
    """Whether the dictionary has the word as somebody's name.

    Thread-safety: may be called from any thread.
    """
    import rjieba

    return [tag for _, tag in rjieba.tag(word)] == ["nr"]
