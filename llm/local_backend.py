"""A transformers model in this process, behind the `Backend` contract.

torch and transformers are imported by the loading thread, so this module is quick to import and
the app starts at once.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from llm.embedded_model import WHEEL_BYTES
from llm.errors import (
    LLMError,
    LoadingStoppedError,
    ModelGoneError,
    ModelNotFoundError,
    Reason,
    ShuttingDownError,
)
from llm.fault_log import log_fault
from llm.local_errors import generate_error, load_error
from llm.local_memory import forget_frames, free_memory, is_given_back, weights_apart
from llm.local_ready import BATCHED_SLOTS, PLAIN_SLOTS, get_files, get_ready, steps
from llm.local_source import Report
from llm.models import EMBEDDED, display_name, told_name
from llm.types import (
    NOT_BEGUN,
    BackendPhase,
    BackendStatus,
    CancelToken,
    Delta,
    Fingerprint,
    Finish,
    GenerationRequest,
    Notice,
)
from llm.wheel_download import FetchStopped

if TYPE_CHECKING:
    from llm.local_loader import LoadedModel
    from llm.settings import Settings

log = logging.getLogger(__name__)

_NOTHING_UNDER_WAY = ("idle", "failed", "unloaded")
"""Phases in which no model is there and none is on its way."""

NOTICE_S = 300.0
"""How long it is told that another model was wanted and isn't there."""


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """What a local model is and how it is loaded; the fields are those of `Settings`.

    Args:
        name: what people call it; empty goes by where it lies.
    """

    data_dir: Path
    model: str = EMBEDDED
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    quantization: Literal["auto", "none", "8bit", "4bit"] = "auto"
    attn_implementation: Literal["auto", "sdpa", "eager", "flash_attention_2"] = "auto"
    trust_remote_code: bool = False
    threads: int | None = None
    slots: int | None = None
    batching: Literal["auto", "on", "off"] = "auto"
    name: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> LocalOptions:
        return cls(
            data_dir=settings.data_dir,
            model=settings.model,
            dtype=settings.dtype,
            quantization=settings.quantization,
            attn_implementation=settings.attn_implementation,
            trust_remote_code=settings.trust_remote_code,
            threads=settings.threads,
            slots=settings.local_slots,
            batching=settings.batching,
        )

    def named(self, settings: Settings) -> tuple[LocalOptions, ...]:
        """The other models that settings name; what they leave out is as here."""
        return tuple(
            replace(self, **model.model_dump(exclude_none=True)) for model in settings.models
        )

    @property
    def called(self) -> str:
        """What people call the model."""
        return self.name or display_name(self.model)

    @property
    def told(self) -> str:
        """What errors call the model: never where it lies."""
        return self.name or told_name(self.model)


class LocalBackend:
    """One local model at a time, loaded in the background; answers several requests at once.

    Which model that is may be chosen anew, for everybody. The new one's files are looked at, and
    fetched or converted, while the old one still answers. Then whoever is being answered is
    answered to the end by the model that began, the old model's memory is given back, and only
    then the new one is loaded; questions wait meanwhile. Where that fails the old one comes back.

    Args:
        options: the model that is loaded first.
        unload_after_s: without an answer for this long the model leaves memory, and comes back
            with the next question; None keeps it.
        usual: the model that is loaded where the first one can't be; None for none.
        keep: told of a model that somebody has chosen, once it is ready.

    Thread-safety: every method may be called from any thread. One lock guards the state; it is
    never held while anything slow happens. One thread at a time, `load-model`, brings into memory
    and out of it what the state says should be there, so there is never a second model.
    """

    def __init__(
        self,
        options: LocalOptions,
        unload_after_s: float | None = None,
        usual: LocalOptions | None = None,
        keep: Callable[[LocalOptions], None] = lambda options: None,
    ) -> None:
        self._slots = options.slots
        self._set = (usual or options).model  # what the setting names
        self._unload_after_s = unload_after_s
        self._changed = threading.Condition()
        self._chosen = options
        self._target: LocalOptions | None = None  # what should be in memory
        self._loaded: LoadedModel | None = None
        self._holds: LocalOptions | None = None  # what is loaded
        self._proven = usual  # what was ready last
        self._picked: LocalOptions | None = None  # what somebody chose, until it is ready
        self._keep = keep
        self._got: LocalOptions | None = None  # whose files are there and were looked at
        self._ends_answers = False  # whether running answers are ended for the chosen model
        self._attempt = CancelToken()  # of bringing the target into memory
        self._working = False  # whether the loading thread is at it
        self._steps = steps(options)
        self._phase: BackendPhase = "idle"
        self._progress: float | None = None
        self._error: LLMError | None = None
        self._notice: Reason | None = None
        self._since = self._used_s = self._noticed_s = time.monotonic()
        self._closed = False
        self._answers: set[CancelToken] = set()
        self._waiting = 0  # questions that wait for a model
        self._users = 0  # whoever works with the loaded model now
        self._watching = False  # whether a thread waits for it to be idle

    @classmethod
    def from_settings(cls, settings: Settings) -> LocalBackend:
        from llm.local_choice import keep_choice, kept_choice

        minutes = settings.unload_after_min
        usual = LocalOptions.from_settings(settings)
        return cls(
            kept_choice(
                usual,
                usual.named(settings),
                settings.model_folders,
                with_hub_cache=settings.list_hub_cache,
            ),
            None if minutes is None else 60 * minutes,
            usual,
            partial(keep_choice, usual),
        )

    @property
    def name(self) -> str:
        return "local"

    @property
    def slots(self) -> int:
        """Fewer until a model is loaded that can answer several in one batch."""
        if self._slots is not None:
            return self._slots
        return BATCHED_SLOTS if self.batched else PLAIN_SLOTS

    @property
    def batched(self) -> bool:
        """Whether answers are given in one batch; False too while no model is loaded."""
        loaded = self._loaded
        return loaded is not None and loaded.batch is not None and self._answers_now

    def window_tokens(self, request: GenerationRequest) -> int | None:
        """The model's window; None while it isn't loaded, or has none."""
        with self.in_use() as loaded:
            return loaded.context_tokens if loaded else None

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        """None too where the model's chat template refuses the messages: `stream` says so."""
        with self.in_use() as loaded:
            if loaded is None:
                return None
            from llm.local_generation import encode

            try:
                return int(encode(loaded, request)["input_ids"].shape[1])
            except LLMError:
                return None

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        """That of the model in memory, while it is the one that is chosen."""
        with self._changed:
            # From the moment that another is chosen the phase is no longer `ready`.
            loaded = self._loaded if self._phase == "ready" else None
            return loaded.fingerprint.now() if loaded is not None and loaded.fingerprint else None

    def status(self) -> BackendStatus:
        with self._changed:
            return BackendStatus(
                phase=self._phase,
                model=self._chosen.called,
                progress=self._progress,
                error=self._error,
                elapsed_s=time.monotonic() - self._since,
                steps=self._steps,
                batched=self.batched,
                notes=loaded.notes if (loaded := self._loaded) is not None else (),
                fetch_bytes=WHEEL_BYTES if self._chosen.model.strip() == EMBEDDED else 0,
                answering=len(self._answers),
                waiting=self._waiting,
                notice=self._notice if time.monotonic() - self._noticed_s < NOTICE_S else None,
                meanwhile=loaded.name if loaded and self._gets_files else "",
            )

    @property
    def chosen(self) -> LocalOptions:
        """The model that is asked, loaded or not."""
        return self._chosen

    @property
    def holds(self) -> LocalOptions | None:
        """The model that is in memory now; while another is waited for, not the chosen one."""
        return self._holds

    def prepare(self) -> None:
        with self._changed:
            if not self._closed and self._phase in _NOTHING_UNDER_WAY:
                self._aim(self._chosen)

    def choose(self, options: LocalOptions, *, stop_answers: bool = False) -> None:
        """Have another model from now on, for everybody. Returns at once; `status` tells the rest.

        Questions that come from now on are answered by it, but for those that come while its files
        are fetched or converted. If it can't be had, the one before stays or comes back.

        Args:
            stop_answers: end the running answers, keeping what they have said, in place of
                letting them finish.
        """
        with self._changed:
            if self._closed:
                return
            if options != self._chosen or self._phase in _NOTHING_UNDER_WAY:
                self._chosen, self._notice, self._picked = options, None, options
                self._ends_answers = stop_answers
                self._aim(options)
                return
            self._ends_answers = self._ends_answers or stop_answers
            # Before that nobody knows whether it can be loaded at all.
            answers = list(self._answers) if stop_answers and self._got == options else []
        for answer in answers:
            answer.cancel()

    def cancel_loading(self) -> None:
        """Load no further: back to the model before, or to none where there was none."""
        with self._changed:
            if self._closed or not self.status().preparing:
                return
            stopped, back = self._chosen, self._proven
            if back is not None and back != stopped:
                self._chosen = back
                self._go_back(back, Reason("model-stopped", {"model": stopped.called}))
            else:
                self._attempt.cancel()
                self._attempt = CancelToken()
                self._target = None
                self._fail(LoadingStoppedError(model=stopped.called))

    def unload(self) -> None:
        """Have no model in memory until the next question; nothing while somebody is answered."""
        with self._changed:
            if self._phase == "ready" and not self._users and not self._waiting:
                self._target = None
                self._enter("unloaded")
                self._work_on()

    def stream(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        # Cancelled by the caller, by close() or by choose(), whichever is first.
        either = CancelToken()
        forget = cancel.on_cancel(either.cancel)
        loaded: LoadedModel | None = None
        try:
            loaded = self._begin(either)
            if loaded is None:
                yield Finish("abort", why=NOT_BEGUN)
                return
            # While it answers another may be chosen, and `status` speaks of that one.
            yield Notice(model=loaded.name, begins=True)
            from llm.local_generation import generate

            with closing(generate(loaded, request, either)) as items:
                for item in items:
                    if isinstance(item, Finish) and item.reason == "abort":
                        # Whoever stopped it knows; whoever didn't is told.
                        item = replace(item, why=None if cancel.cancelled else self._why_ended())
                    yield item
        except LLMError:
            raise
        except Exception as error:  # noqa: BLE001 - the tree is the boundary
            name = loaded.name if loaded else ""
            raise generate_error(error, name) from error.with_traceback(None)
        finally:
            forget()
            was_begun, loaded = loaded is not None, None  # not held any more when it is told so
            if was_begun:
                self._end(either)

    def _why_ended(self) -> Reason | None:
        """Why an answer was ended that nobody has stopped."""
        if self._closed:
            return None
        return Reason("finish-model-changed", {"model": self._chosen.called})

    def close(self) -> None:
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._target = None
            self._attempt.cancel()
            answers = list(self._answers)
            self._enter("idle")
            loaded = None
            if not self._working:  # else the loading thread sees to it
                loaded, self._loaded, self._holds = self._loaded, None, None
        for answer in answers:
            answer.cancel()
        if loaded is not None:
            loaded.close()
            del loaded
            free_memory()

    # -- working with the model --

    def _begin(self, answer: CancelToken) -> LoadedModel | None:
        """Wait for the chosen model and take it for an answer; None if cancelled before."""
        forget = answer.on_cancel(self._wake)
        try:
            with self._changed:
                self._waiting += 1
                try:
                    self.prepare()
                    self._changed.wait_for(
                        lambda: (
                            self._answers_now
                            or self._phase == "failed"
                            or answer.cancelled
                            or self._closed
                        )
                    )
                finally:
                    self._waiting -= 1
                    self._changed.notify_all()
                if answer.cancelled:
                    return None
                if self._closed:
                    raise ShuttingDownError
                if self._error is not None:
                    # One error object may be raised for several waiters: without its old frames.
                    raise self._error.with_traceback(None)
                self._answers.add(answer)
                self._users += 1
                return self._loaded
        finally:
            forget()

    def _end(self, answer: CancelToken) -> None:
        with self._changed:
            self._answers.discard(answer)
            self._users -= 1
            self._used_s = time.monotonic()
            self._changed.notify_all()

    @contextmanager
    def in_use(self) -> Iterator[LoadedModel | None]:
        """The model, which stays as long as this lasts; None while it isn't there to be asked.

        Never loads it. Short: another model waits for the end.
        """
        with self._changed:
            loaded = self._loaded if self._answers_now else None
            users = int(loaded is not None)  # who gets none keeps nobody waiting
            self._users += users
        try:
            yield loaded
        finally:
            del loaded
            with self._changed:
                self._users -= users
                self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # -- the state; called with the lock held --

    @property
    def _gets_files(self) -> bool:
        """Whether the chosen model's files are on their way, while another is in memory."""
        return self._loaded is not None and self._phase in ("fetching", "converting")

    @property
    def _answers_now(self) -> bool:
        """Whether there is a model that answers who asks now."""
        return self._loaded is not None and (self._phase == "ready" or self._gets_files)

    def _aim(self, options: LocalOptions) -> None:
        """Have this model in memory, and give up what was on its way there."""
        self._attempt.cancel()
        self._attempt = CancelToken()
        self._target = options
        self._enter("loading" if self._loaded is None or not self._users else "draining")
        self._work_on()

    def _go_back(self, options: LocalOptions, why: Reason) -> None:
        """Have the model before, and say so."""
        self._chosen = options
        self._notice = Reason("model-went-back", {"why": why, "back": options.called})
        self._noticed_s = time.monotonic()
        self._aim(options)

    def _give_up(self, target: LocalOptions, failure: LLMError) -> None:
        """Have the model before where there is one; else say why this one can't be had."""
        back = self._proven
        if back is None or back == target or self._closed:
            self._proven = None  # one try: it is proven again when it is ready
            self._target = None
            self._fail(failure)
        else:
            self._go_back(back, failure.reason)

    def _work_on(self) -> None:
        self._changed.notify_all()
        if self._working:
            return
        try:
            threading.Thread(target=self._work, name="load-model", daemon=True).start()
            self._working = True
        except Exception as error:  # noqa: BLE001 - nothing may leave the waiters waiting
            self._target = None
            self._fail(load_error(error, self._chosen.told))

    def _enter(self, phase: BackendPhase, progress: float | None = None) -> None:
        if phase != self._phase:
            self._since = time.monotonic()
        self._phase, self._progress = phase, progress
        if phase != "failed":
            self._error = None
        self._changed.notify_all()

    def _fail(self, failure: LLMError) -> None:
        if not self._closed:
            self._enter("failed")
            self._error = failure

    # -- the loading thread --

    def _work(self) -> None:
        try:
            self._bring()
        except BaseException as error:  # noqa: BLE001 - nothing may leave the waiters waiting
            log_fault(log, "The loading thread failed", error)
            with self._changed:
                self._working = False
                self._give_up(self._chosen, load_error(error, self._chosen.told))

    def _bring(self) -> None:
        """Bring what is in memory to what should be there; ends when the two are the same."""
        while True:
            with self._changed:
                target, attempt = self._target, self._attempt
                if self._holds == target:
                    if target is not None:
                        self._used_s = time.monotonic()
                        self._enter("ready")
                        self._watch_idleness()
                    picked, self._picked = self._picked, None
                    if picked is None or picked != target:
                        self._working = False
                        self._changed.notify_all()
                        return
                else:
                    picked = None
            # One that isn't proven came too late: nobody wanted it any more.
            stays = self._holds is not None and self._holds == self._proven
            if picked is not None:
                self._keep(picked)  # it may take a disk's time
            elif target is not None and stays and self._got != target:
                self._get_files(target, attempt)
            elif self._holds is not None:
                self._drain(attempt, target)
            elif target is not None:
                self._load(target, attempt)

    def _drain(self, attempt: CancelToken, target: LocalOptions | None) -> None:
        """When nobody works with the loaded model any more, give its memory back."""
        before = steps(target) if target is not None else ()
        ended: list[CancelToken] = []
        with self._changed:
            # Where nothing is to come after it, the phase says already what is the matter.
            if attempt is self._attempt and self._users and target is not None:
                self._enter("draining")
                self._steps = ("draining", *before)
                ended = list(self._answers) if self._ends_answers else []
        for answer in ended:
            answer.cancel()
        with self._changed:
            if attempt is self._attempt and self._users:
                self._changed.wait_for(
                    lambda: not self._users or attempt is not self._attempt or self._closed
                )
            if attempt is not self._attempt and not self._closed:
                return  # something else is wanted by now
            if target is not None and not self._closed:
                self._enter("loading")
            loaded, self._loaded, self._holds = self._loaded, None, None
        assert loaded is not None
        name, model = loaded.name, weakref.ref(loaded.model)
        try:
            loaded.close()
        except Exception as error:  # noqa: BLE001 - the memory is wanted all the same
            log_fault(log, "A model couldn't be closed", error)
        del loaded
        if not is_given_back(model):
            log.warning("something still holds the model %s, and its memory", name)

    def _report(self, attempt: CancelToken) -> Report:
        def report(phase: BackendPhase, progress: float | None) -> None:
            with self._changed:
                if attempt is self._attempt and not attempt.cancelled:
                    self._enter(phase, progress)

        return report

    def _get_files(self, target: LocalOptions, attempt: CancelToken) -> None:
        """Look at the target's files, and fetch or convert them, while the old model answers.

        Where they can't be had or used, the old model is given up for nothing: it stays.
        """
        its_steps = steps(target)
        with self._changed:
            if attempt is self._attempt:
                self._steps = its_steps
        failure: LLMError
        try:
            get_files(target, attempt, self._report(attempt))
        except FetchStopped:  # something else is wanted by now
            return
        except LLMError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - files may hold anything
            failure = load_error(error, target.model)
            failure.__cause__ = error
        else:
            with self._changed:
                if attempt is self._attempt:
                    self._got = target
            return
        failure = self._told_by_name(failure, target)
        forget_frames(failure)
        with self._changed:
            if not attempt.cancelled and self._holds is not None:
                log.warning("the model %s stays: %s", self._holds.told, type(failure).__name__)
                self._go_back(self._holds, failure.reason)

    def _told_by_name(self, failure: LLMError, options: LocalOptions) -> LLMError:
        """What is kept is for everybody's page: by its name, without where it lies."""
        if "model" in failure.values:
            failure.values = {**failure.values, "model": options.told}
        if type(failure) is ModelNotFoundError and options.model != self._set:
            return ModelGoneError(**failure.values)
        return failure

    def _load(self, target: LocalOptions, attempt: CancelToken) -> None:
        """Load it; where that fails, the one before is aimed at, or the failure is told."""
        its_steps = steps(target)
        with self._changed:
            self._got = None
            if attempt is self._attempt:
                self._steps = its_steps
        failure: LLMError
        try:
            with weights_apart():
                loaded = get_ready(target, attempt, self._report(attempt))
        except FetchStopped as stopped:
            failure = ShuttingDownError()
            failure.__cause__ = stopped
        except LLMError as error:
            failure = error
        except BaseException as error:  # noqa: BLE001 - nothing may leave the waiters waiting
            failure = load_error(error, target.model)
            failure.__cause__ = error
        else:
            free_memory()  # what reading it has left behind
            with self._changed:
                # Where something else is wanted by now, it leaves again as any other does.
                self._loaded, self._holds = loaded, target
                if not attempt.cancelled:
                    self._proven = target
            return
        failure = self._told_by_name(failure, target)
        # The failure is kept, the model must not be: the next try loads another.
        forget_frames(failure)
        free_memory()
        with self._changed:
            if attempt.cancelled:
                return
            kind = type(failure).__name__
            log.warning("the model %s can't be made ready: %s", target.model, kind)
            self._give_up(target, failure)

    def _watch_idleness(self) -> None:
        """Have the model leave when it wasn't used for long. Called with the lock held."""
        if self._unload_after_s is None or self._watching:
            return
        self._watching = True
        threading.Thread(target=self._unload_when_idle, name="idle-model", daemon=True).start()

    def _unload_when_idle(self) -> None:
        assert self._unload_after_s is not None
        with self._changed:
            while self._holds is not None and not self._closed:
                left_s = self._used_s + self._unload_after_s - time.monotonic()
                if self._phase != "ready" or self._users or self._waiting:
                    self._changed.wait()
                elif left_s > 0:
                    self._changed.wait(left_s)
                else:
                    self.unload()
                    break
            self._watching = False
