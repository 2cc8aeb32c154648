"""Presets: system prompts and parameters with a name, each person's own.

One of them may be the default, with which new conversations begin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import uuid4

from llm.conversation_rows import clean
from llm.errors import PresetError, Reason
from llm.types import SamplingParams

MAX_NAME_CHARS = 60
MAX_PROMPT_CHARS = 100_000
MAX_PRESETS = 100
"""Of one person. All of them are in the list that the sidebar sends."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A system prompt and parameters to ask with.

    Args:
        name: unique among a person's, whether case counts or not.
        usual: whether new conversations begin with it.
        preset_id: unique; empty for one that isn't kept yet.
    """

    name: str
    system_prompt: str
    params: SamplingParams
    usual: bool = False
    preset_id: str = ""


def fit_to_keep(preset: Preset) -> Preset:
    """The preset as it can be kept.

    Raises:
        PresetError: it can't.
    """
    name = " ".join(clean(preset.name).split())
    prompt = clean(preset.system_prompt)
    if not name:
        raise PresetError(reason=Reason("reason-preset-unnamed"))
    if len(name) > MAX_NAME_CHARS:
        raise PresetError(reason=Reason("reason-preset-name-long", {"limit": MAX_NAME_CHARS}))
    if len(prompt) > MAX_PROMPT_CHARS:
        raise PresetError(reason=Reason("reason-preset-prompt-long", {"limit": MAX_PROMPT_CHARS}))
    return replace(
        preset,
        name=name,
        system_prompt=prompt,
        params=replace(preset.params, stop=tuple(clean(each) for each in preset.params.stop)),
        preset_id=preset.preset_id or uuid4().hex,
    )
