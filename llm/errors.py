"""Everything that can go wrong, as sentences a person can act on.

    LLMError
    ├── InvalidRequestError            the question or the settings of this request
    │   ├── EmptyQuestionError
    │   ├── QuestionTooLongError       more characters than the page accepts
    │   ├── TooManyQueuedError         enough questions wait behind this answer
    │   ├── ContextOverflowError       more tokens than the model's window
    │   │   ├── MemoryWindowError      more than the memory that is free has room for
    │   │   └── WindowExceededError    the same, without the numbers
    │   ├── InvalidParameterError
    │   │   └── StopStringsError       too many of them, or too long
    │   └── NotAllowedError            the server refuses this request
    ├── SettingsError                  the app's own configuration
    ├── NotSignedInError               a sign-in is needed, and there is none any more
    ├── SignInProviderError            who should say who somebody is can't be reached
    ├── ModelError                     getting a local model ready
    │   ├── ModelNotFoundError
    │   │   └── ModelGoneError         not the setting's: one of those that were listed
    │   ├── NotAModelError
    │   ├── RemoteCodeError
    │   ├── NoChatTemplateError
    │   ├── ModelDownloadError         the embedded one, from pip's index
    │   ├── HubDownloadError
    │   ├── DownloadCorruptError
    │   ├── DiskFullError
    │   ├── MissingPackageError
    │   └── LoadingStoppedError        somebody pressed Cancel
    ├── OutOfMemoryError               in mid-answer
    │   └── WeightsTooLargeError       at load, whatever is asked
    ├── ServerError                    an OpenAI-compatible server
    │   ├── ServerUnreachableError
    │   ├── ServerHostUnknownError
    │   ├── ServerTimeoutError
    │   ├── ServerProxyTimeoutError    a proxy before it lost its patience
    │   ├── ServerTlsError             its certificate can't be trusted
    │   ├── ServerKeyError
    │   ├── ServerModelUnknownError
    │   ├── ServerParameterError       it doesn't take a parameter
    │   ├── ServerNoModelError         it lists none
    │   ├── ServerStartingError        it is there, but still loads its model
    │   ├── ServerBusyError
    │   ├── ServerFaultError           5xx, or an error inside the stream
    │   ├── ServerGarbageError         something that is not the protocol
    │   └── ConnectionLostError        the stream was cut
    │       └── NoAnswerError          before its first text
    ├── StoreError                     where conversations are kept
    │   ├── StoreLockedError           somebody else holds it
    │   ├── StoreFullError
    │   ├── StoreReadOnlyError
    │   ├── StoreGoneError             it can't be reached or opened
    │   ├── StoreBrokenError
    │   ├── StoreNewerError            a newer version of this app made it
    │   └── StoreFaultError            anything else
    ├── ConversationGoneError          deleted meanwhile, or never this person's
    ├── ImportFileError                no file of conversations that can be read
    │   ├── ImportTooLargeError
    │   └── ImportDamagedError
    ├── PresetError                    a preset that can't be kept as it is
    ├── StalledError                   no text for too long
    ├── QueueFullError
    │   └── TooManyWaitingError        of this one person's
    ├── ShuttingDownError
    └── InternalError                  a defect of this app; details are in the log

Each error names its sentence in the catalogue (`message_id`) and the values that fill it, so the
page can say it in the person's language; `str(error)` says it in English. Values are shown to
people: never put a key, a header or a whole response into one. Being cancelled is a finish
reason, not an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from llm.catalogue import Catalogue

Value = str | int | float


@dataclass(frozen=True, slots=True)
class Reason:
    """A sentence, mostly within another: why something is so, by its name in the catalogue."""

    message_id: str
    values: Mapping[str, Value | Reason] = field(default_factory=dict)

    def sentence(self, catalogue: Catalogue, **more: Value) -> str:
        """The sentence in the catalogue's language.

        Args:
            **more: values that are known only now, such as a time that passes.
        """
        told = {
            name: value.sentence(catalogue) if isinstance(value, Reason) else value
            for name, value in self.values.items()
        }
        return catalogue.say(self.message_id, **{**told, **more})


class LLMError(Exception):
    """The root of the tree.

    Args:
        **values: what the sentence needs, by the names it uses.

    Attributes:
        message_id: the sentence's name in the catalogue.
        values: what fills the sentence.
    """

    message_id: ClassVar[str] = "error-internal"

    def __init__(self, **values: Value | Reason) -> None:
        super().__init__(self.message_id)
        self.values = values

    @property
    def reason(self) -> Reason:
        """The sentence, to stand within another."""
        return Reason(self.message_id, self.values)

    def sentence(self, catalogue: Catalogue) -> str:
        """What to tell a person, in the catalogue's language."""
        return self.reason.sentence(catalogue)

    def __str__(self) -> str:
        from llm.catalogue import catalogue

        return self.sentence(catalogue("en"))


class InvalidRequestError(LLMError):
    """The request itself can't be answered. Values: reason."""

    message_id = "error-invalid-request"


class EmptyQuestionError(InvalidRequestError):
    """Nothing was asked."""

    message_id = "error-empty-question"


class QuestionTooLongError(InvalidRequestError):
    """Values: chars, limit, over."""

    message_id = "error-question-too-long"


class TooManyQueuedError(InvalidRequestError):
    """Values: limit."""

    message_id = "error-too-many-queued"


class ContextOverflowError(InvalidRequestError):
    """The prompt leaves no room for an answer. Values: prompt_tokens, limit, over."""

    message_id = "error-context-overflow"


class MemoryWindowError(ContextOverflowError):
    """The same of the memory that is free, which holds less than the window. Values: as above."""

    message_id = "error-memory-window"


class WindowExceededError(ContextOverflowError):
    """The same, from a server that doesn't give the numbers."""

    message_id = "error-window-exceeded"


class InvalidParameterError(InvalidRequestError):
    """Values: parameter, value, low, high."""

    message_id = "error-invalid-parameter"


class StopStringsError(InvalidParameterError):
    """Too many stop strings, or one that is too long or empty. Values: limit, chars."""

    message_id = "error-stop-strings"


class NotAllowedError(InvalidRequestError):
    """The server refuses this request. Values: reason."""

    message_id = "error-not-allowed"


class SettingsError(LLMError):
    """Values: setting, reason."""

    message_id = "error-settings"


class NotSignedInError(LLMError):
    """Signing in is set up, and nobody is signed in here."""

    message_id = "error-not-signed-in"


class SignInProviderError(LLMError):
    """It doesn't answer as a provider does. Values: url, kind."""

    message_id = "error-sign-in-provider"


class ModelError(LLMError):
    """A local model can't be made ready. Values: model, reason."""

    message_id = "error-model"


class ModelNotFoundError(ModelError):
    """Values: model."""

    message_id = "error-model-not-found"


class ModelGoneError(ModelNotFoundError):
    """The same of a model that another place than the setting `model` names. Values: model."""

    message_id = "error-model-gone"


class NotAModelError(ModelError):
    """It is there, but it isn't a model that can chat. Values: model, reason."""

    message_id = "error-not-a-model"


class RemoteCodeError(ModelError):
    """The model wants to run code of its own and settings don't allow it. Values: model."""

    message_id = "error-remote-code"


class NoChatTemplateError(ModelError):
    """Values: model."""

    message_id = "error-no-chat-template"


class ModelDownloadError(ModelError):
    """No network, or the index hasn't got it. Values: model."""

    message_id = "error-model-download"


class HubDownloadError(ModelError):
    """The hub isn't reached. Values: model."""

    message_id = "error-hub-download"


class DownloadCorruptError(ModelError):
    """What arrived isn't what was asked for (its hash differs). Values: model."""

    message_id = "error-download-corrupt"


class DiskFullError(ModelError):
    """Values: folder, needed_mb, free_mb."""

    message_id = "error-disk-full"


class MissingPackageError(ModelError):
    """A library that this model needs isn't installed. Values: package."""

    message_id = "error-missing-package"


class LoadingStoppedError(ModelError):
    """Somebody stopped the loading. Values: model."""

    message_id = "error-loading-stopped"


class OutOfMemoryError(LLMError):
    """In mid-answer. Values: model."""

    message_id = "error-out-of-memory"


class WeightsTooLargeError(OutOfMemoryError):
    """The model itself doesn't fit. Values: model."""

    message_id = "error-weights-too-large"


class ServerError(LLMError):
    """Values: url and what the leaf adds."""

    message_id = "error-server-fault"


class ServerUnreachableError(ServerError):
    """Refused or no route. Values: url."""

    message_id = "error-server-unreachable"


class ServerHostUnknownError(ServerError):
    """Values: url, host."""

    message_id = "error-server-host-unknown"


class ServerTimeoutError(ServerError):
    """Values: url, seconds."""

    message_id = "error-server-timeout"


class ServerProxyTimeoutError(ServerError):
    """504: a proxy before it lost its patience; the server itself may be reading. Values: url."""

    message_id = "error-server-proxy-timeout"


class ServerTlsError(ServerError):
    """The server's certificate can't be trusted. Values: url."""

    message_id = "error-server-tls"


class ServerKeyError(ServerError):
    """401 or 403. Values: url."""

    message_id = "error-server-key"


class ServerModelUnknownError(ServerError):
    """Values: url, model."""

    message_id = "error-server-model-unknown"


class ServerParameterError(ServerError):
    """It doesn't take a parameter, or not this value. Values: url, parameter, reason.

    `parameter` is one name as the API spells it, or several with commas.
    """

    message_id = "error-server-parameter"

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(str(self.values["parameter"]).split(", "))


class ServerNoModelError(ServerError):
    """It lists no model, and none is set. Values: url."""

    message_id = "error-server-no-model"


class ServerStartingError(ServerError):
    """It answers, but its model isn't loaded yet. Values: url."""

    message_id = "error-server-starting"


class ServerBusyError(ServerError):
    """429 or 503. Values: url, seconds (0 where the server does not say)."""

    message_id = "error-server-busy"


class ServerFaultError(ServerError):
    """5xx, or an error object inside the stream. Values: url, status (0 inside a stream)."""

    message_id = "error-server-fault"


class ServerGarbageError(ServerError):
    """It answers, but not in this protocol. Values: url."""

    message_id = "error-server-garbage"


class ConnectionLostError(ServerError):
    """Cut in mid-answer. Values: url."""

    message_id = "error-connection-lost"


class NoAnswerError(ConnectionLostError):
    """Cut before the first text. Values: url."""

    message_id = "error-no-answer"


class StoreError(LLMError):
    """Where conversations are kept. Values: place."""

    message_id = "error-store"


class StoreLockedError(StoreError):
    """Somebody else holds it for too long. Values: place."""

    message_id = "error-store-locked"


class StoreFullError(StoreError):
    """The disk is full. Values: place."""

    message_id = "error-store-full"


class StoreReadOnlyError(StoreError):
    """It may only be read. Values: place."""

    message_id = "error-store-read-only"


class StoreGoneError(StoreError):
    """It can't be reached or opened. Values: place."""

    message_id = "error-store-gone"


class StoreBrokenError(StoreError):
    """It is damaged, or no database. Values: place."""

    message_id = "error-store-broken"


class StoreNewerError(StoreError):
    """A newer version of this app made it. Values: place."""

    message_id = "error-store-newer"


class StoreFaultError(StoreError):
    """Anything else; details are in the log. Values: place, kind."""

    message_id = "error-store-fault"


class ConversationGoneError(LLMError):
    """It was deleted meanwhile, or never was this person's. Values: none."""

    message_id = "error-conversation-gone"


class ImportFileError(LLMError):
    """A file with no conversation in it, or of an unknown kind."""

    message_id = "error-import-file"


class ImportTooLargeError(ImportFileError):
    """Values: limit (MB)."""

    message_id = "error-import-too-large"


class ImportDamagedError(ImportFileError):
    """It is damaged before the first conversation."""

    message_id = "error-import-damaged"


class PresetError(LLMError):
    """A preset that can't be kept as it is. Values: reason."""

    message_id = "error-preset"


class StalledError(LLMError):
    """Values: seconds."""

    message_id = "error-stalled"


class QueueFullError(LLMError):
    """Values: limit."""

    message_id = "error-queue-full"


class TooManyWaitingError(QueueFullError):
    """This one person has enough questions in line. Values: limit."""

    message_id = "error-too-many-waiting"


class ShuttingDownError(LLMError):
    """The app is stopping."""

    message_id = "error-shutting-down"


class InternalError(LLMError):
    """A defect of this app. Values: kind (the exception's class name, never its text)."""

    message_id = "error-internal"
