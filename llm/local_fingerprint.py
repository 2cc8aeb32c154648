"""What identifies a loaded model and the way it computes.

Imports torch and transformers; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import torch
import transformers

from llm.local_packed import PackedLinear
from llm.models import EMBEDDED, ModelSpec
from llm.types import Fingerprint

if TYPE_CHECKING:
    from llm.local_backend import LocalOptions
    from llm.local_loader import LoadedModel

# Source: transformers, utils/chat_template_utils.py, the one clock that templates are given.
_CLOCK = "strftime_now"
_FORMAT = re.compile(_CLOCK + r"\(\s*(?:'([^'\\]*)'|\"([^\"\\]*)\")\s*\)")
# Llama's templates ask whether there is such a clock.
_ASKED = re.compile(_CLOCK + r"\s+is\s+(?:not\s+)?defined")


@dataclass(frozen=True, slots=True)
class LocalFingerprint:
    """A loaded model's fingerprint.

    Args:
        fixed: all but the clock.
        formats: how the chat template writes the time into every prompt; most don't.
    """

    fixed: Fingerprint
    formats: tuple[str, ...] = ()

    def now(self) -> Fingerprint:
        """With what the template makes of the present time."""
        if not self.formats:
            return self.fixed
        now = datetime.now()  # the server's own, as the template is told it
        told = [now.strftime(each) for each in self.formats]
        return replace(self.fixed, template=f"{self.fixed.template} {json.dumps(told)}")


def fingerprint_of(
    loaded: LoadedModel, spec: ModelSpec, revision: str, options: LocalOptions
) -> LocalFingerprint | None:
    """The fingerprint of a model as it was loaded; None where something of it can't be known.

    That is a model with an adapter, whose base came from elsewhere, one that runs code of another
    repository, and one whose template has the time in a way that isn't understood.

    Args:
        revision: of the folder that it was loaded from.
    """
    model, tokenizer = loaded.model, loaded.tokenizer
    maps = (getattr(model.config, "auto_map", None), tokenizer.init_kwargs.get("auto_map"))
    foreign_code = options.trust_remote_code and "--" in repr(maps)
    if getattr(model, "_hf_peft_config_loaded", False) or foreign_code:
        return None
    template = json.dumps(tokenizer.chat_template, sort_keys=True)
    formats = clock_formats(json.loads(template))
    if formats is None:
        return None
    fixed = Fingerprint(
        kind="local",
        server="",
        model=EMBEDDED if spec.kind == "embedded" else spec.hub_id or spec.name,
        revision=revision,
        template=hashlib.sha256(template.encode()).hexdigest(),
        numerics=json.dumps(numerics_of(loaded, options), sort_keys=True),
    )
    return LocalFingerprint(fixed, formats)


def clock_formats(template: Any) -> tuple[str, ...] | None:
    """How a chat template, or those of several names, writes the time; None where that is unclear."""
    texts = template.values() if isinstance(template, dict) else [template]
    text = "\n".join(_ASKED.sub("", str(each)) for each in texts)
    found = [one or other for one, other in _FORMAT.findall(text)]
    return tuple(dict.fromkeys(found)) if len(found) == text.count(_CLOCK) else None


def numerics_of(loaded: LoadedModel, options: LocalOptions) -> dict[str, object]:
    """All that may make another number of the same weights, if only by rounding."""
    model = loaded.model
    weights = list(model.parameters())
    devices = {weight.device for weight in weights}
    return {
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "quantization": options.quantization,
        "bitsandbytes": _version("bitsandbytes") if options.quantization[0].isdigit() else "",
        "flash_attn": _version("flash-attn"),
        "dtypes": sorted({str(weight.dtype) for weight in weights}),
        "attention": str(model.config._attn_implementation),
        "packed": sum(isinstance(module, PackedLinear) for module in model.modules()),
        "batched": loaded.batch is not None,
        "devices": sorted({_name(device) for device in devices}),
        "threads": torch.get_num_threads(),
        "remote_code": options.trust_remote_code,
    }


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return f"cuda {torch.cuda.get_device_name(device)}"
    if device.type == "cpu":
        return f"cpu {torch.backends.cpu.get_cpu_capability()}"
    return str(device.type)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
