"""What a person's click does: to its end, and only while their sign-in counts.

Once somebody has clicked again, or has left, Streamlit ends a run at its next look at the session's
state. It looks in callbacks as well, and what the click before was to do would be lost there
without a word: a question that was sent, half of a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec

from streamlit.runtime.scriptrunner import get_script_run_ctx

from ui.owner import needs_sign_in

P = ParamSpec("P")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Have Streamlit end no run in here; what it wants waits for the run's next look.

    Source: every look, wherever it is made, asks `ScriptRequests.on_scriptrunner_yield`.
    """
    context = get_script_run_ctx()
    requests = context.script_requests if context is not None else None
    if requests is None or "on_scriptrunner_yield" in vars(requests):  # within another one
        yield
        return
    requests.on_scriptrunner_yield = lambda: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        del requests.on_scriptrunner_yield


def callback(action: Callable[P, object]) -> Callable[P, None]:
    """The action as every widget of this app is to call it.

    It does nothing once a sign-in is over; the run that follows asks for it.
    """

    @wraps(action)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        with undisturbed():
            if not needs_sign_in():
                action(*args, **kwargs)

    return guarded
