"""What a question is asked with where nobody says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm.models import EMBEDDED
from llm.types import SamplingParams

if TYPE_CHECKING:
    from llm.settings import Settings

EMBEDDED_TEMPERATURE = 0.2
"""The embedded model is tiny: warmer than this it says whatever comes to its mind."""


def usual_temperature(settings: Settings, local_model: str = "") -> float:
    """The settings', but a cool one for the embedded model where they leave it open.

    Args:
        local_model: the spec of the local model that is asked; empty for a server's.
    """
    tamed = local_model.strip() == EMBEDDED
    unset = "temperature" not in settings.model_fields_set
    return EMBEDDED_TEMPERATURE if tamed and unset else settings.temperature


def usual_params(settings: Settings, local_model: str = "") -> SamplingParams:
    """All of the settings' parameters.

    Args:
        local_model: as in `usual_temperature`.
    """
    return SamplingParams(
        temperature=usual_temperature(settings, local_model),
        top_p=settings.top_p,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
        top_k=settings.top_k,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
        presence_penalty=settings.presence_penalty,
        frequency_penalty=settings.frequency_penalty,
        stop=settings.stop,
    )
