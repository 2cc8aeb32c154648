"""What of a name can be seen: without what isn't drawn, or turns the text around it."""

from __future__ import annotations

import re

# Not the joiner that emoji are made with, nor the tags that flags are.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\ufff9-\ufffb\U000e0001]"
)


def seen(text: str) -> str:
    """The text without them. White space stays, and what joins or chooses the forms of letters."""
    return _UNSEEN.sub("", text)
