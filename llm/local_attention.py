"""Flash attention where it is installed and the model allows it, and a word where it is not.

Imports transformers; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import logging
from typing import Any

from transformers.utils import is_flash_attn_2_available

from llm.errors import Reason

log = logging.getLogger(__name__)

_FLASH = "flash_attention_2"
_NOT_INSTALLED = Reason("reason-flash-not-installed")


def settle_attention(model: Any, wish: str) -> Reason | None:
    """Switch a loaded model to flash attention, if that was asked for or is best; never fails.

    It stays with PyTorch's own attention (sdpa; eager where the model has no other) otherwise.

    Args:
        model: a transformers model, with its weights, where it will stay.
        wish: a value of the setting `attn_implementation`; `sdpa` and `eager` change nothing here.

    Returns:
        Why it isn't used, where people should hear of it: they asked for it by name, or `auto`
        would have taken it and lacks nothing but the package.
    """
    if wish not in ("auto", _FLASH):
        return None
    obstacle = flash_obstacle(
        on_gpu=model.device.type == "cuda",
        half=model.dtype.itemsize == 2,
        supported=bool(model._supports_flash_attn),
        installed=is_flash_attn_2_available(),
    )
    if obstacle is None:
        obstacle = _switch(model)
    if obstacle is None or (wish == "auto" and obstacle != _NOT_INSTALLED):
        return None
    log.warning("flash attention isn't used: %s", obstacle.message_id)
    return obstacle


def flash_obstacle(*, on_gpu: bool, half: bool, supported: bool, installed: bool) -> Reason | None:
    """Why flash attention can't be used; None where it can.

    What can't be changed comes before what pip can: nobody should install a package in vain. The
    package is looked for here because transformers would fetch a kernel from the hub instead.

    Args:
        on_gpu: the weights are on a GPU that torch calls cuda.
        half: they are 16-bit numbers.
        supported: the model's class knows flash attention.
        installed: flash-attn is, in a version that transformers takes.
    """
    if not on_gpu:
        return Reason("reason-flash-no-gpu")
    if not supported:
        return Reason("reason-flash-not-supported")
    if not half:
        return Reason("reason-flash-number-type")
    return None if installed else _NOT_INSTALLED


def _switch(model: Any) -> Reason | None:
    try:
        model.set_attn_implementation(_FLASH)
    except (ImportError, ValueError) as error:  # such as a GPU that is too old for it
        log.warning("transformers refuses flash attention: %s", error)
        return Reason("reason-flash-refused")
    # transformers only warns where a model's code has its attention fixed.
    if model.config._attn_implementation != _FLASH:
        return Reason("reason-flash-not-supported")
    return None
