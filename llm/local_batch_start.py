"""Whether a loaded model can answer several at once, found out by having it do so.

Imports torch; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import torch

from llm.fault_log import log_fault
from llm.local_batch import Batch
from llm.local_errors import is_out_of_memory
from llm.local_memory import forget_frames, free_bytes, free_memory
from llm.local_ragged import KeyValues, NotBatchableError, Part, RaggedModel

if TYPE_CHECKING:
    from llm.local_loader import LoadedModel

log = logging.getLogger(__name__)

SHARE = {"cuda": 0.8}
"""How much of the memory that is free keys and values may take, by the kind of device."""
SHARE_ELSEWHERE = 0.5  # the page, the browser and the system live there too

_TOLERANCE = 0.05
"""How far logits may be from those of the model alone, as a share of their length.

Measured on the embedded model: rounding makes 5e-7 of it in float32 and 4e-3 in bfloat16; keys of
another answer, keys that were forgotten or a missing mask make 0.13 to 0.6.
"""

_PROMPT = 14  # tokens


def batch_for(loaded: LoadedModel, size: int) -> Batch | None:
    """A batch for this model; None where answers can't be batched, and the log says why.

    A prompt that is read in two passes beside others must come to the same as read alone.
    """
    try:
        ragged = RaggedModel(loaded.model, loaded.device)
        bytes_per_token, speed = _try_out(loaded, ragged)
    except NotBatchableError as error:
        log.info("answers are given one by one: %s", error)
        return None
    except Exception as error:  # noqa: BLE001 - models raise anything; the plain way is left
        if not is_out_of_memory(error):
            log_fault(log, "answers are given one by one: trying several at once failed", error)
        forget_frames(error)
        free_memory()
        return None
    share = SHARE.get(torch.device(loaded.device).type, SHARE_ELSEWHERE)
    return Batch(
        ragged,
        loaded.name,
        size=size,
        ends=loaded.eos_ids,
        bytes_per_token=bytes_per_token,
        free_bytes=lambda: int(free_bytes() * share),
        speed=speed,
    )


def _try_out(loaded: LoadedModel, ragged: RaggedModel) -> tuple[int, float]:
    """Bytes that keys and values of a token take, and tokens read a second.

    Raises:
        NotBatchableError: several at once don't come to the same as each alone.
    """
    size = loaded.model.config.get_text_config(decoder=True).vocab_size
    # Any ids do; these are far apart, and none twice.
    texts = [[(7 + 31 * (n + start)) % size for n in range(_PROMPT)] for start in (0, 40, 80)]
    memories = [KeyValues() for _ in texts]
    halves = [_PROMPT // 2, _PROMPT - 1, _PROMPT]
    with torch.inference_mode():
        alone = [
            loaded.model(input_ids=torch.tensor([ids], device=loaded.device)).logits[0, -1].float()
            for ids in texts
        ]
        for memory in memories:
            memory.capacity = _PROMPT
        began_s = time.perf_counter()
        firsts = [Part(m, ids[:n]) for m, ids, n in zip(memories, texts, halves, strict=True)]
        last = ragged.logits(firsts, [2])
        speed = sum(halves) / max(time.perf_counter() - began_s, 1e-6)
        for memory, count in zip(memories, halves, strict=True):
            memory.length = count
        rests = [Part(m, ids[m.length :]) for m, ids in zip(memories[:2], texts, strict=False)]
        together = [*ragged.logits(rests, [0, 1]), last[0]]
    for one, other in zip(alone, together, strict=True):
        off = float((one.to(other.device) - other).norm() / one.norm())
        if not off < _TOLERANCE:
            raise NotBatchableError(f"together the logits are off by {off:.3f}")
    return memories[0].bytes_per_token(), speed
