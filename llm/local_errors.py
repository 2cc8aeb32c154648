"""What transformers, torch and the hub raise, in the words of this app's error tree.

They raise the same few built-in types for everything, so type names and stable parts of their
messages decide. Imports neither library: a name is enough.
"""

from __future__ import annotations

import errno
import logging
import re

from llm.errors import (
    DiskFullError,
    HubDownloadError,
    InternalError,
    LLMError,
    MissingPackageError,
    ModelError,
    ModelNotFoundError,
    NotAModelError,
    OutOfMemoryError,
    Reason,
    RemoteCodeError,
    WeightsTooLargeError,
)
from llm.fault_log import log_fault
from llm.local_memory import forget_frames, free_memory
from llm.model_facts import NoFactsError

log = logging.getLogger(__name__)

_OUT_OF_MEMORY = re.compile(
    r"out of memory|can.t allocate memory|cannot allocate memory|not enough memory"
    # accelerate, when the weights don't fit into what the devices have:
    r"|dispatched on the CPU or the disk|offload_folder|offload the whole model",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"No module named '([\w.]+)'|not found in your environment: ([\w-]+)|pip install (?:-U )?[\"'`]?([\w-]+)"
    r"|install torch and ([\w-]+)"
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on whatever device."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    return isinstance(error, RuntimeError | ValueError) and bool(_OUT_OF_MEMORY.search(str(error)))


def generate_error(error: BaseException, model: str) -> LLMError:
    """The error of one answer. Logs where it happened, never the words of the conversation."""
    if isinstance(error, LLMError):
        return error
    if is_out_of_memory(error):
        log.warning("out of memory in mid-answer (%s)", type(error).__name__)
        return OutOfMemoryError(model=model)
    log_fault(log, "generating failed", error)
    return InternalError(kind=type(error).__name__)


def why_it_ended(error: BaseException, model: str) -> LLMError:
    """`generate_error` for an error that is caught here and raised elsewhere, perhaps kept for long.

    What its frames hold, the cache and the logits, is let go.
    """
    failure = generate_error(error, model)
    out_of_memory = is_out_of_memory(error)
    forget_frames(error)
    if failure is not error:
        failure.__cause__ = None if out_of_memory else error
    if out_of_memory:
        free_memory()
    return failure


def load_error(error: BaseException, model: str) -> LLMError:
    """The error of getting a model ready. Args: model: what it is called, or its spec."""
    if isinstance(error, LLMError):
        return error
    if is_out_of_memory(error):
        return WeightsTooLargeError(model=model)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return DiskFullError(folder=str(error.filename or ""), needed_mb=0, free_mb=0)
    names = {base.__name__ for base in type(error).__mro__}
    text = str(error)
    if isinstance(error, RuntimeError) and "can't start new thread" in text:
        return ModelError(model=model, reason=Reason("reason-no-thread"))
    mapped = _hub_error(names, text, model) or _library_error(error, names, text, model)
    if mapped is None:
        log_fault(log, "loading failed", error)
        mapped = ModelError(model=model, reason=type(error).__name__)
    return mapped


def no_facts_error(error: NoFactsError, model: str) -> NotAModelError:
    """The error of a model whose files show already that it can't be loaded."""
    return NotAModelError(model=model, reason=error.reason)


def _hub_error(names: set[str], text: str, model: str) -> LLMError | None:
    if "GatedRepoError" in names or "gated repo" in text:
        return ModelError(model=model, reason=Reason("reason-licence"))
    if "LocalEntryNotFoundError" in names or "OfflineModeIsEnabled" in names:
        return HubDownloadError(model=model)
    if names & {"RepositoryNotFoundError", "RevisionNotFoundError", "HFValidationError"}:
        return ModelNotFoundError(model=model)
    if "is not a valid model identifier" in text or "is not a local folder" in text:
        return ModelNotFoundError(model=model)
    if names & {"HfHubHTTPError", "ConnectionError", "ConnectError", "TransportError"}:
        return HubDownloadError(model=model)
    return None


def _library_error(error: BaseException, names: set[str], text: str, model: str) -> LLMError | None:
    if "trust_remote_code" in text:
        return RemoteCodeError(model=model)
    if "flash" in text.lower() and "attn" in text.lower().replace("attention", "attn"):
        return MissingPackageError(package="flash-attn")
    if isinstance(error, ImportError):
        found = _MISSING.search(text)
        package = next((name for name in found.groups() if name), "") if found else ""
        return MissingPackageError(package=package or error.name or "transformers")
    reason = _no_model_reason(names, text)
    return NotAModelError(model=model, reason=Reason(reason)) if reason else None


def _no_model_reason(names: set[str], text: str) -> str | None:
    if "SafetensorError" in names or "mismatch" in text:
        return "reason-weights-damaged"
    if "no file named" in text:
        return "reason-no-weights"
    if "Unrecognized" in text or "does not recognize this architecture" in text:
        return "reason-unknown-type"
    if "okenizer" in text:
        return "reason-tokenizer-unreadable"
    unread = {"JSONDecodeError", "UnicodeDecodeError", "NotReadableError", "RecursionError"}
    if names & unread or "JSON" in text:
        return "reason-part-unreadable"
    return None
