"""Which local model is loaded, for everybody: look at another, see what it takes, have it loaded.

A pick from the list changes nothing yet: there is one model in memory, and others may be in the
middle of an answer. What the model would take stands below, and a button loads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from unicodedata import east_asian_width

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.literal_markdown import literal
from llm.local_ready import slots_of
from llm.model_fit import Fit
from llm.model_list_local import ListedModel
from llm.plain_markdown import plain
from llm.seen_text import seen
from llm.types import BackendStatus
from ui import resources
from ui.backend_status import StatusPlace, short_status
from ui.callback import callback
from ui.language import say, say_reason
from ui.model_in_sight import bring_in_sight

_KEY = "local_model_pick"
_LOOKED = "local_model_looked"
_SURE = "local_model_sure"
_LOOKS = "local_model_looks"
_DRAWN = "local_models_drawn"

LABEL_WIDTH = 30
"""Letters of a list entry that are seen, about; a Chinese character is as wide as two."""
LEAST_NAME = 9
"""Of a name at least so much is shown."""


def draw_model_pick(
    pick_place: DeltaGenerator, state_place: DeltaGenerator, model_place: DeltaGenerator
) -> StatusPlace:
    """Draw the list, the state of what is loaded, and what can be done about it."""
    backend = resources.local_backend()
    models = {model.key: model for model in _models()}
    chosen = _key_of_chosen()
    # Set anew each time: it shows what is loaded for everybody, unless another is looked at.
    looked = st.session_state.get(_LOOKED)
    if looked not in models or looked == chosen:
        looked = None
    st.session_state[_KEY] = looked or chosen
    labels = _labels(list(models.values()))
    pick_place.selectbox(
        say("sidebar-model"),
        list(models),
        key=_KEY,
        format_func=lambda key: labels.get(key, str(key)),
        on_change=callback(_look),
        help=say("models-help"),
    )
    st.session_state[_DRAWN] = _drawn()
    place = StatusPlace(
        state_place, lambda: short_status(backend.status()), drawn_with=lambda: _drawn()
    )
    with model_place.container(key="local_model", gap="small"):
        said_place, button_place = st.empty(), st.empty()
        status = backend.status()
        if looked is not None:
            said_place.caption(_told(models[looked], status))
        elif status.meanwhile:
            said_place.caption(plain(say("model-meanwhile", name=status.meanwhile)))
        elif status.phase == "draining" and (affected := _affected(status)):
            said_place.caption("  \n".join(affected))
        elif status.notice is not None:
            said_place.caption(plain(say_reason(status.notice)))
        elif status.ready:
            said_place.caption(_how_it_answers(status, backend.slots))
        with button_place.container(horizontal=True, gap="small"):
            _draw_buttons(models.get(looked or ""), status)
        if looked is not None:
            bring_in_sight(st.session_state.get(_LOOKS, 0))
    return place


def models_changed() -> bool:
    """Whether the models, or what is loaded, are no longer as the page says."""
    drawn = st.session_state.get(_DRAWN)
    return st.session_state.get("backend") == "local" and drawn is not None and _drawn() != drawn


def _models() -> tuple[ListedModel, ...]:
    """Those that are listed, with the chosen one, which may have gone from where it was found."""
    models, chosen = resources.local_models().models(), resources.local_backend().chosen
    if any(model.options == chosen for model in models):
        return models
    return (*models, ListedModel(chosen))


def _key_of_chosen() -> str:
    return ListedModel(resources.local_backend().chosen).key


def _drawn() -> object:
    """All that is drawn here, but for sizes that are never the same for long."""
    backend = resources.local_backend()
    status = backend.status()
    asks = st.session_state.get(_LOOKED) is not None or status.phase == "draining"
    return (
        _models(),
        backend.chosen,
        (status.preparing, status.phase in ("draining", "failed", "unloaded")),
        (status.answering, _waiting(status)) if asks else None,
        (status.notice, status.meanwhile, backend.holds),
        (status.batched, status.notes),
        resources.local_models().sizes_are_known,
    )


# -- what is said --


def _how_it_answers(status: BackendStatus, slots: int) -> str:
    """How many at once and in which way, and what isn't as the person asked for."""
    lines = [say("model-batched" if status.batched else "model-side-by-side", slots=slots)]
    lines += [say("model-note", why=say_reason(note)) for note in status.notes]
    return plain(" ".join(lines))


def _labels(models: list[ListedModel]) -> dict[str, str]:
    """The name first, a long one without its middle. Two of one name are told apart by folder."""
    names = [model.options.called for model in models]
    labels = [_label(model, names.count(model.options.called)) for model in models]
    # Streamlit knows an option by what it shows.
    again = Counter[str]()
    for number, label in enumerate(labels):
        again[label] += 1
        if again[label] > 1:
            labels[number] = f"{label} ({again[label]})"
    return {model.key: label for model, label in zip(models, labels, strict=True)}


def _label(model: ListedModel, alike: int) -> str:
    name = (
        model.options.called if seen(model.options.called).strip() else repr(model.options.called)
    )
    parts: list[str] = []
    if alike > 1 and (
        folder := model.options.model.replace("\\", "/").rstrip("/").split("/")[-2:-1]
    ):
        name = f"{name} ({folder[0]})"
    name = seen(name)
    held, weights = (
        resources.local_models().fit(model),
        resources.local_models().weights_bytes(model),
    )
    if model.trouble is not None:
        half = model.trouble.message_id == "reason-half-downloaded"
        parts.append(say("model-mark-half" if half else "model-mark-trouble"))
    elif held is not None and held.level != "fits":
        parts.append(say(f"model-mark-{held.level}"))
    if weights is not None and not model.impossible:
        parts.append(_size(weights))
    if (kept := _kept_as(model)) and kept not in model.options.called:
        parts.append(kept)
    rest = seen("".join(f" · {part}" for part in parts))
    return shortened(name, max(LEAST_NAME, LABEL_WIDTH - _width(rest))) + rest


def shortened(name: str, width: int) -> str:
    """The name without its middle where it is wider: models differ in how they begin and end."""
    if _width(name) <= width:
        return name
    begin, end = "", ""
    for first, last in zip(name, reversed(name), strict=True):
        if _width(f"{begin}{first}…{end}") > width:
            break
        begin += first
        if _width(f"{begin}…{last}{end}") > width:
            break
        end = last + end
    return f"{begin}…{end}"


def _width(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _kept_as(model: ListedModel) -> str:
    """How the weights are kept: as settings say, else as the files do; empty for plain numbers."""
    wished = {"8bit": "8-bit", "4bit": "4-bit"}.get(model.options.quantization)
    return wished or (model.facts.quantization if model.facts else "")


def _size(count: int) -> str:
    """Bytes as people say them."""
    if count >= 9.95e9:
        return f"{count / 1e9:.0f} GB"
    return f"{count / 1e9:.1f} GB" if count >= 999.5e6 else f"{max(1, round(count / 1e6))} MB"


def _told(model: ListedModel, status: BackendStatus) -> str:
    """What a model that is looked at would take, and whom it would affect."""
    lines = []
    name = model.options.called
    if model.trouble is not None:
        kind = "model-trouble" if model.impossible else "model-trouble-half"
        lines.append(say(kind, name=literal(name), why=say_reason(model.trouble)))
    if not model.impossible:
        lines += _needs(model)
        lines += _before_it(model)
        lines += _affected(status)
    return "  \n".join(plain(line) for line in lines)


def _needs(model: ListedModel) -> list[str]:
    """What it takes, and whether that is there."""
    listed, name = resources.local_models(), literal(model.options.called)
    held, weights = listed.fit(model), listed.weights_bytes(model)
    if held is None or held.context_tokens is None:
        if weights is not None:
            return [say("model-takes-weights", name=name, weights=_size(weights)), *_fits(held)]
        return [say("model-unknown", name=name)] if model.facts is None else []
    takes = say(
        "model-takes",
        name=name,
        needed=_size(held.needed_bytes),
        weights=_size(held.weights_bytes),
        context=_size(held.context_bytes),
        tokens=held.context_tokens,
    )
    lines, slots = [takes, *_fits(held)], slots_of(model.options)
    if held.level == "fits" and (all_of_them := held.needed_by(slots)) > held.free_bytes:
        lines.append(say("model-many", slots=slots, needed=_size(all_of_them)))
    if held.level == "no" and st.session_state.get(_SURE) == model.key:
        lines.append(say("model-cost"))
    return lines


def _fits(held: Fit | None) -> list[str]:
    if held is None:
        return []
    free, tokens = _size(held.free_bytes), held.fitting_tokens or 0
    return [say(f"model-{held.level}", free=free, tokens=tokens)]


def _before_it(model: ListedModel) -> list[str]:
    """What becomes of the model that is in memory, which may be none."""
    held = resources.local_backend().holds
    if held is None:
        return [say("model-shared")]
    converts = [say(f"model-converts-{model.conversion}")] if model.conversion else []
    return [*converts, say("model-for-all", name=literal(held.called))]


def _affected(status: BackendStatus) -> list[str]:
    """Whom another model concerns: who waits is answered by it, who is answered is told last."""
    lines = []
    if waiting := _waiting(status):
        lines.append(say("model-waiting", questions=waiting))
    if status.answering:
        lines.append(say("model-running", answers=status.answering))
    return lines


def _waiting(status: BackendStatus) -> int:
    """Questions in line, and those that have a place and wait for a model."""
    return resources.registry().waiting(resources.local_backend()) + status.waiting


# -- what can be done --


def _draw_buttons(looked: ListedModel | None, status: BackendStatus) -> None:
    """At most three, each in its place."""
    places = [st.empty() for _ in range(3)]
    if looked is not None:
        _button(places[2], "leave", _leave)
    if looked is not None and not looked.impossible:
        held = resources.local_models().fit(looked)
        fits = held is None or held.level != "no"
        sure = st.session_state.get(_SURE) == looked.key
        if not fits and not sure:
            _button(places[0], "load", _make_sure, looked)
        elif status.answering:
            _button(places[0], "load-after", _load, looked, False, answers=status.answering)
            _button(places[1], "load-now", _load, looked, True, answers=status.answering)
        else:
            _button(places[0], "load" if fits else "load-anyway", _load, looked, False)
    elif looked is None and status.phase == "draining":
        _button(places[1], "load-now", _stop_answers, answers=status.answering)
        _button(places[2], "cancel", _cancel)
    elif looked is None and status.preparing:
        _button(places[2], "cancel", _cancel)


def _button(
    place: DeltaGenerator, what: str, action: Callable[..., None], *args: object, **values: int
) -> None:
    place.button(
        say(f"model-{what}", **values),
        key=f"model_{what.replace('-', '_')}",
        on_click=callback(action),
        args=args,
    )


def _look() -> None:
    st.session_state[_LOOKED] = st.session_state[_KEY]
    st.session_state.pop(_SURE, None)
    st.session_state[_LOOKS] = st.session_state.get(_LOOKS, 0) + 1


def _make_sure(model: ListedModel) -> None:
    """What doesn't fit is loaded by a second press, which says what it costs."""
    st.session_state[_SURE] = model.key
    st.session_state[_LOOKS] = st.session_state.get(_LOOKS, 0) + 1


def _leave() -> None:
    st.session_state.pop(_LOOKED, None)
    st.session_state.pop(_SURE, None)


def _load(model: ListedModel, stop_answers: bool) -> None:
    _leave()
    resources.local_backend().choose(model.options, stop_answers=stop_answers)


def _stop_answers() -> None:
    backend = resources.local_backend()
    if backend.status().phase == "draining":  # else it would be the next model's answers
        backend.choose(backend.chosen, stop_answers=True)


def _cancel() -> None:
    resources.local_backend().cancel_loading()
