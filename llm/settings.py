"""One validated Settings object: environment, `.env`, then the settings file.

Every field can be set as `STEADY_CHAT_<NAME>` or in `steady_chat.toml` (another path by
`STEADY_CHAT_SETTINGS_FILE`). README's settings table is generated from this file's fields.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from llm.errors import Reason, SettingsError, Value
from llm.models import display_name
from llm.reasons import WrongValueError, first_wrong, reading_failed
from llm.settings_files import DOTENV, PREFIX, place_of, read_settings_file, warn_of_unknown
from llm.types import (
    MAX_PENALTY,
    MAX_REPETITION_PENALTY,
    MAX_SEED,
    MAX_STOP_CHARS,
    MAX_STOP_STRINGS,
    MAX_TOP_K,
    stop_strings_fit,
)

BackendName = Literal["local", "vllm", "scripted"]
CacheMode = Literal["off", "exact", "similar"]

_ADDRESS = r"^https?://\S+$"


def _address(value: str) -> str:
    try:
        parts = urlsplit(value)
        host = parts.hostname
    except ValueError:
        host = None
    # A password with one of `/?#` in it would be taken for a part of the address, and shown.
    if not host or "@" in value.removeprefix(f"{parts.scheme}://{parts.netloc}"):
        raise WrongValueError(Reason("reason-not-an-address"))
    return value


Address = Annotated[str, Field(pattern=_ADDRESS), AfterValidator(_address)]


class Server(BaseModel):
    """One OpenAI-compatible server.

    Args:
        name: what the page calls it.
        base_url: may hold a user and a password; shown without them.
        api_key: its key, if it wants one.
        model: the model to ask at first; empty takes the server's first.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, protected_namespaces=()
    )

    name: str = Field(min_length=1, max_length=60)
    base_url: Address = Field(repr=False)
    api_key: SecretStr | None = None
    model: str = ""


Dtype = Literal["auto", "bfloat16", "float16", "float32"]
Quantization = Literal["auto", "none", "8bit", "4bit"]
Attention = Literal["auto", "sdpa", "eager", "flash_attention_2"]


class LocalModel(BaseModel):
    """One local model of several; what is left out is as the setting of that name says.

    Args:
        model: a folder, a `.gguf` file, a hub id or `embedded`.
        name: what the page calls it; empty goes by where it lies.
        threads: CPU threads.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, protected_namespaces=()
    )

    model: str = Field(min_length=1)
    name: str = Field("", max_length=60)
    dtype: Dtype | None = None
    quantization: Quantization | None = None
    attn_implementation: Attention | None = None
    threads: int | None = Field(None, ge=1, le=1024)

    @property
    def called(self) -> str:
        """What the page calls it."""
        return self.name or display_name(self.model)


class Settings(BaseSettings):
    """How this installation behaves.

    Thread-safety: read once, then only read.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=DOTENV,
        env_file_encoding="utf-8",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        # `model_…` is this app's own word, not pydantic's.
        protected_namespaces=(),
    )

    backends: Annotated[tuple[BackendName, ...], NoDecode] = Field(
        ("local", "vllm"),
        description="The backends offered in the sidebar, the first one chosen: `local`, `vllm`, `scripted` (a demo without a model).",
    )
    language: Literal["auto", "en", "zh"] = Field(
        "auto", description="The page's language at first; `auto` follows the browser."
    )
    data_dir: Path = Field(
        default_factory=lambda: user_data_path("steady-chat", appauthor=False),
        description="Where models and conversations are kept; empty is the user's data folder.",
    )
    database_url: SecretStr = Field(
        SecretStr(""),
        description="Where conversations are kept instead, as SQLAlchemy spells it: `postgresql+psycopg://user:password@host/name`.",
    )
    redis_url: SecretStr = Field(
        SecretStr(""),
        description="A Redis in which answers are kept to be given again, for several machines, as `redis://:password@host:6379/0`. Empty takes `REDIS_URL`; without either they are in a file beside the conversations.",
    )
    cache_max_mb: int = Field(
        256,
        ge=1,
        le=1_000_000,
        description="Megabytes that answers to be given again may take; those used least recently leave first.",
    )

    model: str = Field(
        "embedded",
        min_length=1,
        description="`embedded`, a model folder, a `.gguf` file, or a hub id such as `Qwen/Qwen2.5-1.5B-Instruct`.",
    )
    dtype: Dtype = Field(
        "auto", description="Weights' number type; `auto` picks what the hardware is good at."
    )
    quantization: Quantization = Field(
        "auto",
        description="`auto` computes on a CPU with the 4-bit or 8-bit numbers that weights from a GGUF file were; `8bit` and `4bit` are bitsandbytes'.",
    )
    attn_implementation: Attention = Field(
        "auto",
        description="transformers' attention; `auto` takes flash attention on a GPU where flash-attn is installed and `STEADY_CHAT_BATCHING` is `off`: batches are made for `sdpa`.",
    )
    models: Annotated[tuple[LocalModel, ...], NoDecode] = Field(
        (),
        description="More local models to choose from in the sidebar, as JSON or, more readable, as `[[models]]` in `steady_chat.toml`.",
    )
    model_folders: Annotated[tuple[Path, ...], NoDecode] = Field(
        (),
        description="Folders in which models are looked for, with commas between: model folders and `.gguf` files, up to three folders deep.",
    )
    list_hub_cache: bool = Field(
        True, description="Whether the models in the hub's cache are listed, too."
    )
    unload_after_min: float | None = Field(
        None,
        gt=0,
        le=100_000,
        description="Minutes without a question until the local model leaves memory; the next question brings it back. Empty keeps it.",
    )
    trust_remote_code: bool = Field(
        False,
        description="Whether a model that settings name may run Python code of its own here; one that was only found never may.",
    )
    threads: int | None = Field(
        None, ge=1, le=1024, description="CPU threads for the local model; empty lets torch choose."
    )
    batching: Literal["auto", "on", "off"] = Field(
        "auto",
        description="Whether the local model gives several answers in one batch; `auto` where it can, `on` refuses a model that can't, `off` generates each by itself.",
    )
    local_slots: int | None = Field(
        None,
        ge=1,
        le=64,
        description="Answers the local model gives at once; more wait in line. Empty is 8 in a batch, 2 by themselves.",
    )

    vllm_base_url: Address = Field(
        "http://127.0.0.1:8000/v1",
        repr=False,  # it may hold a password
        description="The OpenAI-compatible server, where there is just one.",
    )
    vllm_api_key: SecretStr | None = Field(None, description="Its key, if it wants one.")
    vllm_model: str = Field("", description="The model to ask; empty takes the server's first.")
    servers: Annotated[tuple[Server, ...], NoDecode] = Field(
        (),
        description="Several servers in place of that one, as JSON or, more readable, as `[[servers]]` in `steady_chat.toml`.",
    )
    server_failover: bool = Field(
        False,
        description="Whether the next server is asked when one is gone before its first text.",
    )
    server_wait_s: float = Field(
        600,
        ge=0,
        le=86_400,
        description="Seconds that a question waits for a server that isn't up yet; 0 gives up at once.",
    )
    vllm_slots: int = Field(
        32,
        ge=1,
        le=4096,
        description="Requests sent to each server at once; one that stands in for another by failover gets the other's as well.",
    )
    connect_timeout_s: float = Field(5, gt=0, le=120, description="Seconds to reach the server.")
    idle_timeout_s: float = Field(
        60,
        gt=0,
        le=86_400,
        description="Seconds without new text, after the first, until the answer is ended.",
    )

    embedding_model: str = Field(
        "minilm",
        description="What finds similar questions for the answer cache: `minilm` (English; fetched once, 84 MB), a sentence-transformers folder or hub id, `server:NAME` for a model that the first server embeds with; empty finds none.",
    )
    embedding_prefix: str = Field(
        "",
        max_length=200,
        description="What that model wants before every question, such as `query: ` for E5; empty takes what its folder says.",
    )

    scripts_file: Path | None = Field(
        None, description="What the scripted backend says (JSON); empty gives its demo answer."
    )

    system_prompt: str = Field(
        "", max_length=20_000, description="The sidebar's system prompt at first."
    )
    temperature: float = Field(
        0.7,
        ge=0,
        le=2,
        description="The sidebar's value at first; 0.2 with the embedded model unless set.",
    )
    top_p: float = Field(0.95, ge=0.01, le=1, description="The sidebar's value at first.")
    max_tokens: int = Field(512, ge=1, le=1_000_000, description="The sidebar's value at first.")
    seed: int | None = Field(
        None, ge=0, le=MAX_SEED, description="The sidebar's seed at first; empty varies."
    )
    top_k: int | None = Field(
        None,
        ge=0,
        le=MAX_TOP_K,
        description="The sidebar's value at first, as the next four; empty leaves it to the server or the model.",
    )
    min_p: float | None = Field(
        None, ge=0, le=1, description="0 to 1; a share of the likeliest token's probability."
    )
    repetition_penalty: float | None = Field(
        None,
        ge=0.01,
        le=MAX_REPETITION_PENALTY,
        description="Up to 10; above 1 puts off what the conversation has already.",
    )
    presence_penalty: float | None = Field(
        None,
        ge=-MAX_PENALTY,
        le=MAX_PENALTY,
        description="-2 to 2; above 0 puts off what the answer has already.",
    )
    frequency_penalty: float | None = Field(
        None,
        ge=-MAX_PENALTY,
        le=MAX_PENALTY,
        description="-2 to 2; the same, for each time that the answer has it.",
    )
    stop: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description='The sidebar\'s stop strings at first: one as it is, or several as a list, `["###", "\\nUser:"]`.',
    )
    max_question_chars: int = Field(
        400_000, ge=1, le=10_000_000, description="A longer question is refused."
    )
    max_answer_tokens: int = Field(
        1_000_000,
        ge=1,
        le=1_000_000,
        description="The most tokens that an answer may have; the sidebar's *Max tokens* goes no further.",
    )
    max_waiting: int = Field(
        100,
        ge=1,
        le=10_000,
        description="Questions that may wait in line for a backend; more are refused until there is room.",
    )
    max_waiting_each: int = Field(
        10,
        ge=1,
        le=10_000,
        description="The same of one person: who is signed in, else one browser.",
    )

    cache: CacheMode = Field(
        "exact",
        description="The sidebar's answer cache at first: `off`, `exact` (the very same question), `similar` (also one in nearly the same words).",
    )
    cache_shared: bool = Field(
        False,
        description="Whether all users are given each other's answers to first questions; else everybody's are their own.",
    )
    cache_shared_clear: bool = Field(
        False,
        description="Whether any user may forget the shared answers on the page, for everybody; else they stay until they expire.",
    )
    cache_random: bool = Field(
        False,
        description="Whether sampled answers (a temperature, and no seed) are given again at first; the sidebar has it, too.",
    )
    cache_ttl_h: float = Field(
        24, gt=0, le=100_000, description="Hours for which an answer is given again."
    )
    cache_aging_ttl_h: float = Field(
        1,
        gt=0,
        le=100_000,
        description="The most for a question whose answer is soon another: about versions, schedules, laws, fees.",
    )
    cache_model_ttl_h: Annotated[dict[str, float], NoDecode] = Field(
        {},
        description='Hours in place of `STEADY_CHAT_CACHE_TTL_H` for single models, as JSON: `{"Qwen2.5-1.5B-Instruct": 48}`.',
    )
    cache_max_chars: int = Field(
        100_000, ge=1, le=10_000_000, description="A longer answer isn't kept for the next time."
    )
    cache_pieces_per_s: float | None = Field(
        None,
        gt=0,
        le=10_000,
        description="A typewriter's pace for an answer from the cache, pieces (about tokens) a second; empty shows it at once.",
    )

    metrics_token: SecretStr | None = Field(
        None,
        description="Who asks for `/metrics` with this as its bearer token is given the figures for Prometheus; empty switches that off.",
    )

    api_key: SecretStr | None = Field(
        None,
        description="Who sends this as the bearer token may use the API at `/v1` and `/stream`; empty switches it off, but for the next setting.",
    )
    api_on_loopback: bool = Field(
        False,
        description="Whether programs on this very machine may use the API without a key, where none is set; never what comes through a proxy.",
    )
    api_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Web pages of other origins that may use the API from a browser, with commas between, such as `http://localhost:9000`; without any, none may.",
    )
    api_max_body_kb: int = Field(
        1024, ge=1, le=1_000_000, description="A larger request is refused by the API."
    )
    api_time_limit_s: float = Field(
        600,
        gt=0,
        le=86_400,
        description="Seconds that one request to the API may take, its time in line included.",
    )

    @field_validator("backends", "model_folders", "api_origins", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("backends")
    @classmethod
    def _some(cls, value: tuple[BackendName, ...]) -> tuple[BackendName, ...]:
        if not value:
            raise WrongValueError(Reason("reason-no-backend"))
        return tuple(dict.fromkeys(value))

    @field_validator("api_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        # As browsers spell it: a page's origin is compared letter by letter.
        if not all(re.fullmatch(r"https?://[^\s/@A-Z]+", origin) for origin in value):
            raise WrongValueError(Reason("api-reason-origin"))
        return value

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: SecretStr) -> SecretStr:
        if not re.match(r"$|sqlite:///.|postgresql(\+psycopg)?://.", value.get_secret_value()):
            raise WrongValueError(Reason("reason-database-url"))
        return value

    @field_validator("redis_url")
    @classmethod
    def _known_store(cls, value: SecretStr) -> SecretStr:
        if not re.match(r"$|rediss?://.|unix://.", value.get_secret_value()):
            raise WrongValueError(Reason("reason-redis-url"))
        return value

    @field_validator("servers", "models", "cache_model_ttl_h", mode="before")
    @classmethod
    def _from_json(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, str):
            return value
        try:
            if not value.strip():
                return cls.model_fields[info.field_name or ""].default
            return json.loads(value)
        except ValueError:
            raise WrongValueError(Reason("reason-value-not-json")) from None

    @field_validator("servers")
    @classmethod
    def _told_apart(cls, value: tuple[Server, ...]) -> tuple[Server, ...]:
        for name, times in Counter(server.name for server in value).items():
            if times > 1:
                raise WrongValueError(Reason("reason-same-name", {"name": name}))
        return value

    @field_validator("cache_model_ttl_h")
    @classmethod
    def _some_time(cls, value: dict[str, float]) -> dict[str, float]:
        if any(not 0 < hours <= 100_000 for hours in value.values()):
            raise WrongValueError(Reason("reason-hours"))
        return value

    @field_validator("models")
    @classmethod
    def _named_apart(cls, value: tuple[LocalModel, ...]) -> tuple[LocalModel, ...]:
        for name, times in Counter(model.called for model in value).items():
            if times > 1:
                raise WrongValueError(Reason("reason-same-name", {"name": name}))
        return value

    @field_validator("stop", mode="before")
    @classmethod
    def _one_or_a_list(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.startswith("["):
            try:
                return json.loads(value)
            except ValueError:
                pass  # such as [END]
        return (value,) if value else ()

    @field_validator("stop")
    @classmethod
    def _few_and_short(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not stop_strings_fit(value):
            limits: dict[str, Value] = {"limit": MAX_STOP_STRINGS, "chars": MAX_STOP_CHARS}
            raise WrongValueError(Reason("reason-stop-strings", limits))
        return value

    @field_validator(
        "threads",
        "unload_after_min",
        "seed",
        "top_k",
        "min_p",
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
        "scripts_file",
        "vllm_api_key",
        "cache_pieces_per_s",
        "metrics_token",
        "api_key",
        mode="before",
    )
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        names = settings_cls.model_fields
        assert isinstance(dotenv_settings, DotEnvSettingsSource)
        warn_of_unknown(names, dotenv_settings.env_vars)
        file_settings = InitSettingsSource(settings_cls, read_settings_file(names))
        return init_settings, env_settings, dotenv_settings, file_settings

    def conversations_url(self) -> str:
        """Where conversations are kept, as SQLAlchemy spells it; it may hold a password."""
        told = self.database_url.get_secret_value()
        if told.startswith("postgresql://"):
            return told.replace("postgresql://", "postgresql+psycopg://", 1)
        return told or f"sqlite:///{self.data_dir / 'conversations.sqlite3'}"

    def answers_url(self) -> str:
        """The Redis in which answers are kept; empty where it is a file. It may hold a password."""
        return self.redis_url.get_secret_value() or os.environ.get("REDIS_URL", "")

    def answers_file(self) -> Path:
        """The file in which answers are kept otherwise: beside the conversations' where that is one."""
        told = re.fullmatch(r"sqlite:///([^:?][^?]*)(\?.*)?", self.conversations_url())
        folder = Path(told[1]).parent if told and not told[1].startswith("file:") else self.data_dir
        return folder / "answers.sqlite3"

    @property
    def server_is_named(self) -> bool:
        """Whether somebody has set a server up; else the usual address is tried."""
        return bool(self.model_fields_set & {"servers", "vllm_base_url"})

    def all_servers(self) -> tuple[Server, ...]:
        """The servers in their order; the single one, named by its address, where none is named."""
        if self.servers:
            return self.servers
        name = urlsplit(self.vllm_base_url).netloc.rpartition("@")[2]
        return (
            Server.model_construct(
                name=name,
                base_url=self.vllm_base_url,
                api_key=self.vllm_api_key,
                model=self.vllm_model,
            ),
        )

    def server(self, name: str = "") -> Server:
        """The server of that name; empty is the first.

        Raises:
            KeyError: there is none.
        """
        servers = self.all_servers()
        return {server.name: server for server in servers}[name or servers[0].name]

    def shown(self) -> dict[str, str]:
        """Every setting as text that may be shown: the key masked, the address without its user."""
        return {name: _shown(name, getattr(self, name)) for name in type(self).model_fields}


def _shown(name: str, value: object) -> str:
    if value is None:
        return ""
    if name == "stop":
        return json.dumps(value, ensure_ascii=False) if value else ""
    if name == "servers":
        assert isinstance(value, tuple)
        return ", ".join(f"{server.name} ({_bare(server.base_url)})" for server in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if value else ""
    if name == "models":
        assert isinstance(value, tuple)
        return ", ".join(f"{model.called} ({model.model})" for model in value)
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if name == "vllm_base_url":
        return _bare(str(value))
    return str(value)  # pydantic's SecretStr gives asterisks


def _bare(address: str) -> str:
    """An address without its user. Rather too much than too little: a password may hold any sign."""
    return re.sub(r"[?#].*", "", re.sub(r"(?<=://).*@", "", address))


def load_settings() -> Settings:
    """Read the settings.

    Raises:
        SettingsError: naming the setting, where it stands and what is wrong with it, never its
            value.
    """
    try:
        return Settings()
    except ValidationError as error:
        place, reason = first_wrong(error)
        setting = place_of(place[0])
        if place[0] in ("servers", "models"):
            within = [str(int(part) + 1) if part.isdecimal() else part for part in place[1:]]
            setting = " · ".join([setting, *within])
        raise SettingsError(setting=setting, reason=reason) from None
    except (ValueError, OSError) as error:  # the settings file speaks for itself
        raise SettingsError(setting=str(DOTENV.resolve()), reason=reading_failed(error)) from None
