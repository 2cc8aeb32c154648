"""Weights that were 4-bit or 8-bit numbers are computed with as such, on CPUs.

A token's time is mostly that of reading the weights. A GGUF file keeps them as small whole numbers,
32 of which share a scale; converted to bf16 (`llm.local_convert`) they take two to three times the
bytes. Here each linear layer's weights are looked at once, after loading: those that are such
numbers, up to the rounding of bf16, are packed again, and a few rows at a time are multiplied by
PyTorch's 4-bit kernel. Nothing is made coarser than it was. Many rows, a prompt's, are multiplied
with the plain weights, which is quicker for them and why both are kept.

Source: the blocks are those of llama.cpp's Q4_1 and Q8_0, ggml/src/ggml-common.h; the kernel is
PyTorch's aten/src/ATen/native/cpu/int4mm_kernel.cpp, the one torchao calls.

Imports torch; import this module where a model is loaded, not before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from llm.model_fit import MOST_PACKED_BYTES

GROUP = 32
"""Weights that share a scale, in a row."""

TOLERANCE = 0.0035
"""Packed weights may differ from the plain ones by so much, root mean square over that of the
weights. bf16 rounds with up to 0.004, 0.0017 on average; the embedded model's weights come back
with 0.0022. Weights that were not 8-bit numbers are off by 0.0055, by 0.08 as 4-bit ones."""

MOST_ROWS = 8
"""Rows up to which the 4-bit kernel is quicker than the plain one; half as many for 8-bit numbers."""

SMALL = 2_000_000
"""Weights of a matrix that one thread multiplies in about 0.1 ms."""

_SAMPLE_ROWS = 16
# The kernel's own blocks are 64 rows at most; so few at once stay in the CPU's cache.
_ROWS_AT_ONCE = 512
_TINY = torch.finfo(torch.float32).tiny

_multiply = torch.ops.aten._weight_int4pack_mm_for_cpu.default
_arrange = torch.ops.aten._convert_weight_to_int4pack_for_cpu.default


@dataclass(frozen=True, slots=True)
class Packed:
    """Weights of shape (N, K) as the kernel wants them.

    Args:
        codes: 4-bit numbers 0 to 15, packed.
        scales: (P * K / 32, N, 2), scale and offset: a weight is (code - 8) * scale + offset.
        planes: P, 1 for 4-bit numbers. 8-bit ones are two 4-bit numbers each, high and low, laid
            side by side, so that a row is (1, 2 * K) and is multiplied with the input twice.
    """

    codes: Any
    scales: Any
    planes: int


class PackedLinear(torch.nn.Linear):  # type: ignore[misc]
    """A linear layer that has its weights twice: plain for many rows, packed for few.

    Thread-safety: as every module's in eval mode; nothing is kept between calls.
    """

    def __init__(self, plain: Any, packed: Packed) -> None:
        super().__init__(plain.in_features, plain.out_features, bias=False, device="meta")
        self.weight = plain.weight  # the same parameter: it may be the embeddings' too
        self.bias = plain.bias
        self.packed = packed
        self.requires_grad_(False)
        self.eval()
        # A module finds its parameters slowly, and this is asked 200 times a token.
        self._most = MOST_ROWS // packed.planes
        self._biased = plain.bias is not None
        self._twice = packed.planes == 2

    def forward(self, states: Any) -> Any:
        """(…, K) to (…, N)."""
        shape = states.shape
        rows = states.reshape(-1, shape[-1])
        if rows.shape[0] > self._most:
            return torch.nn.functional.linear(states, self.weight, self.bias)
        if self._twice:
            rows = torch.cat((rows, rows), dim=-1)
        packed = self.packed
        product = _multiply(rows, packed.codes, GROUP, packed.scales)
        if self._biased:
            product += self.bias
        return product.view(*shape[:-1], -1)


def cpu_packs() -> bool:
    """Whether this machine's CPU has what packed weights are for."""
    return bool(torch.backends.cpu.get_cpu_capability() == "AVX512")


def pack_model(model: Any) -> int:
    """Pack what can be packed, in place; how many layers that were.

    Only on a CPU with AVX-512 and with bf16 weights: there it was measured. With other number types
    PyTorch has no such kernel worth the name. Not with large models: it takes a third to two thirds
    more memory, which `llm.model_fit` counts.

    Args:
        model: a transformers model in eval mode, loaded and where it will stay.
    """
    if model.device.type != "cpu" or model.dtype != torch.bfloat16 or not cpu_packs():
        return 0
    if model.get_memory_footprint() > MOST_PACKED_BYTES:
        return 0
    count = 0
    for name, layer in list(model.named_modules()):
        # Exactly this class: others compute something of their own.
        if type(layer) is not torch.nn.Linear or layer.weight.dtype != torch.bfloat16:
            continue
        if (packed := pack(layer.weight)) is not None:
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, PackedLinear(layer, packed))
            count += 1
    if count:
        _use_threads_by_size(model)
    return count


def _use_threads_by_size(model: Any) -> None:
    """Few rows of small matrices take one thread: waking another takes longer than they do.

    OpenMP's number of threads is each calling thread's own, so no other answer is disturbed.
    """
    all_threads = torch.get_num_threads()
    linear = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    large = [layer for layer in linear if layer.weight.numel() > SMALL]
    if len(large) > 1:  # the head alone doesn't make a model large
        return

    def at_start(_model: Any, args: Any, kwargs: Any) -> None:
        ids = args[0] if args else kwargs.get("input_ids")
        few = ids is not None and ids.numel() <= MOST_ROWS
        torch.set_num_threads(1 if few else all_threads)

    model.register_forward_pre_hook(at_start, with_kwargs=True)
    for layer in large:
        layer.register_forward_pre_hook(lambda *_: torch.set_num_threads(all_threads))


def pack(weight: Any) -> Packed | None:
    """A matrix (N, K) packed; None where it isn't made of 4-bit or 8-bit numbers."""
    weight = weight.detach()
    rows, columns = weight.shape
    if rows % 16 or columns % GROUP:
        return None
    # Some rows tell: in a matrix all have the same kind of numbers.
    some = weight[:: max(1, rows // _SAMPLE_ROWS)]
    for split in (_four_bit, _eight_bit):
        if _close(some, *split(some)):
            pieces = [_arranged(*split(piece)) for piece in weight.split(_ROWS_AT_ONCE)]
            codes, scales = zip(*pieces, strict=True)
            return Packed(
                torch.cat(codes), torch.cat(scales, dim=1), 1 if split is _four_bit else 2
            )
    return None


def _four_bit(weight: Any) -> tuple[Any, Any, Any]:
    """Q4_1: the least of a group is 0, the greatest 15. Codes (N, 1, G, 32), two of (N, 1, G, 1)."""
    groups = weight.float().view(weight.shape[0], 1, -1, GROUP)
    least, greatest = groups.aminmax(dim=-1, keepdim=True)
    scale = ((greatest - least) / 15).clamp_min_(_TINY)
    codes = groups.sub_(least).mul_(1 / scale).round_()
    return codes, scale.bfloat16(), (least + 8 * scale).bfloat16()


def _eight_bit(weight: Any) -> tuple[Any, Any, Any]:
    """Q8_0: the greatest of a group is 127 or -127. Codes (N, 2, G, 32), two of (N, 2, G, 1).

    128 + number = 16 * high + low, and each half is centred: the rounding of a large sum and a
    large correction would not cancel out.
    """
    groups = weight.float().view(weight.shape[0], -1, GROUP)
    scale = torch.linalg.vector_norm(groups, torch.inf, dim=-1, keepdim=True).div_(127)
    scale.clamp_min_(_TINY)
    numbers = groups.mul_(1 / scale).round_().add_(128)
    codes = torch.stack(((numbers / 16).floor_(), numbers), dim=1)
    codes[:, 1] -= 16 * codes[:, 0]
    scales = torch.stack((16 * scale, scale), dim=1)
    offsets = torch.stack((7.5 * scale, 0.5 * scale), dim=1)
    return codes, scales.bfloat16(), offsets.bfloat16()


def _close(weight: Any, codes: Any, scales: Any, offsets: Any) -> bool:
    """Whether these parts, as the kernel will read them, are the weights."""
    again = ((codes - 8) * scales.float() + offsets.float()).sum(dim=1).view(weight.shape)
    plain = weight.float()
    return bool((again - plain).norm() <= TOLERANCE * plain.norm())


def _arranged(codes: Any, scales: Any, offsets: Any) -> tuple[Any, Any]:
    """The parts as the kernel reads them: (N, P * K / 2) and (P * K / 32, N, 2)."""
    rows = codes.shape[0]
    both = torch.cat((scales, offsets), dim=-1).view(rows, -1, 2)
    return _arrange(codes.view(rows, -1).int(), 1), both.transpose(0, 1)
