"""A GGUF file as a safetensors folder, once: `python -m llm.local_convert SOURCE.gguf FOLDER`.

transformers reads GGUF, but takes half a minute each time for what loads in half a second as
safetensors. It runs in a process of its own, which can be killed and whose long pure-Python loops
don't hold up the app. It says how far it is in JSON lines on stdout:

    {"progress": 0.5}                         weights converted, 0 to 1
    {"error": "NotAModelError", "values": …}  the last line of a failure (`llm.child_lines`)

On stderr it says where a failure came from, for the log. It ends itself when its stdin closes: it must not outlive an app that was killed.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

from llm.child_lines import end_with_the_app, say, say_error
from llm.errors import DiskFullError, LLMError, NotAModelError, Reason, WeightsTooLargeError
from llm.local_conversions import part_of, sign
from llm.local_errors import is_out_of_memory, load_error
from llm.wheel_download import require_space

# Tokenizer files and slack, over the weights.
_EXTRA_BYTES = 50_000_000
_PARAMETER_BYTES = 2  # bf16


def convert(source: Path, folder: Path) -> None:
    """Write `source` as `folder`, which appears in one step when it is whole.

    Raises:
        NotAModelError: damaged, or no architecture that transformers reads.
        MissingPackageError: a library that reading it needs isn't installed.
        DiskFullError: not enough room beside `folder`.
        WeightsTooLargeError: the unpacked weights don't fit.
    """
    part = part_of(folder)
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        _write(source, part)
        sign(part, source)
        _sync(part)
        os.replace(part, folder)
    except LLMError:
        raise
    except Exception as error:
        raise _failure(error, source, folder) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _failure(error: Exception, source: Path, folder: Path) -> LLMError:
    if is_out_of_memory(error):
        return WeightsTooLargeError(model=source.name)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(folder.parent).free // 1_000_000
        return DiskFullError(folder=str(folder.parent), needed_mb=free + 1, free_mb=free)
    if isinstance(error, ImportError):
        return load_error(error, source.name)
    # transformers: “GGUF model with architecture … is not supported yet.”
    unknown = isinstance(error, ValueError) and "is not supported" in str(error)
    reason = Reason("reason-unknown-type" if unknown else "reason-gguf-damaged")
    return NotAModelError(model=source.name, reason=reason)


def _write(source: Path, folder: Path) -> None:
    # First the file's head, which is quick: a damaged file need not wait for torch.
    tensors = _read_once(source).tensors
    parameters = sum(int(tensor.n_elements) for tensor in tensors)
    require_space(folder, parameters * _PARAMETER_BYTES + _EXTRA_BYTES)

    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    _report_tensors(len(tensors))
    where: dict[str, Any] = {"gguf_file": source.name}
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **where)
    model = AutoModelForCausalLM.from_pretrained(
        source.parent,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
        **where,
    )
    # The weights are plain now, but save_pretrained refuses a model that still says otherwise.
    model.is_quantized = False
    for holder, mark in ((model, "hf_quantizer"), (model.config, "quantization_config")):
        if hasattr(holder, mark):
            delattr(holder, mark)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _read_once(source: Path) -> Any:
    """Read the file's head once. transformers reads it four times, and maps names per module.

    Both are pure Python over 100,000 fields: two thirds of the whole time. This process converts
    one file and ends, so the answers are simply kept.
    """
    import gguf

    gguf.GGUFReader = functools.cache(gguf.GGUFReader)
    gguf.get_tensor_name_map = functools.cache(gguf.get_tensor_name_map)
    return gguf.GGUFReader(str(source))


def _report_tensors(count: int) -> None:
    import gguf

    dequantize = gguf.dequantize
    done = 0

    def counted(data: Any, kind: Any) -> Any:
        nonlocal done
        result = dequantize(data, kind)
        done += 1
        say(progress=min(done / count, 1.0))
        return result

    gguf.dequantize = counted


def _sync(folder: Path) -> None:
    """To the disk before the folder gets its name: a power cut must not leave an empty model."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def main(arguments: list[str]) -> int:
    """Convert; the process's exit code. 0 whole, 1 failed and said why, 2 called wrongly."""
    if len(arguments) != 2:
        print("usage: python -m llm.local_convert SOURCE.gguf FOLDER", file=sys.stderr)
        return 2
    end_with_the_app()
    try:
        convert(Path(arguments[0]), Path(arguments[1]))
    except LLMError as error:
        if error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        say_error(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
