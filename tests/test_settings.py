"""Settings: where they come from, which wins, and what is said of a wrong one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from llm.catalogue import catalogue
from llm.errors import Reason, SettingsError
from llm.settings import Settings, load_settings

SECRET = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run in, and none of the machine's own settings."""
    import os

    for name in os.environ:
        if name.upper().startswith("STEADY_CHAT_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_any_setting_the_defaults_hold() -> None:
    settings = load_settings()
    assert settings.backends == ("local", "vllm")
    assert settings.model == "embedded"
    assert settings.vllm_base_url == "http://127.0.0.1:8000/v1"
    assert settings.vllm_api_key is None
    assert settings.seed is None
    assert settings.trust_remote_code is False


def test_environment_wins_over_dotenv_over_the_file(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / "steady_chat.toml").write_text(
        'model = "toml"\nvllm_model = "toml"\nsystem_prompt = "toml"\n', encoding="utf-8"
    )
    (elsewhere / ".env").write_text(
        "STEADY_CHAT_MODEL=dotenv\nSTEADY_CHAT_VLLM_MODEL=dotenv\nOTHER=1\n", encoding="utf-8"
    )
    monkeypatch.setenv("STEADY_CHAT_MODEL", "environment")
    settings = load_settings()
    assert settings.model == "environment"
    assert settings.vllm_model == "dotenv"
    assert settings.system_prompt == "toml"


def test_the_settings_file_may_be_elsewhere(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = elsewhere / "sub" / "other.toml"
    other.parent.mkdir()
    other.write_text('model = "elsewhere"\n', encoding="utf-8")
    (elsewhere / "steady_chat.toml").write_text('model = "here"\n', encoding="utf-8")
    monkeypatch.setenv("STEADY_CHAT_SETTINGS_FILE", str(other))
    assert load_settings().model == "elsewhere"


def test_a_text_in_another_script_comes_through(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / ".env").write_text(
        "STEADY_CHAT_SYSTEM_PROMPT=请用中文回答。🙂\n", encoding="utf-8"
    )
    assert load_settings().system_prompt == "请用中文回答。🙂"


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("vllm", ("vllm",)),
        ("vllm,local", ("vllm", "local")),
        (" scripted , local,, scripted ", ("scripted", "local")),
    ],
)
def test_backends_are_a_list_with_commas(
    monkeypatch: pytest.MonkeyPatch, told: str, meant: tuple[str, ...]
) -> None:
    monkeypatch.setenv("STEADY_CHAT_BACKENDS", told)
    assert load_settings().backends == meant


def test_backends_may_be_a_list_in_the_file(elsewhere: Path) -> None:
    (elsewhere / "steady_chat.toml").write_text('backends = ["scripted"]\n', encoding="utf-8")
    assert load_settings().backends == ("scripted",)


@pytest.mark.parametrize("name", ["THREADS", "SEED", "SCRIPTS_FILE", "VLLM_API_KEY"])
def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"STEADY_CHAT_{name}", "")
    assert getattr(load_settings(), name.lower()) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backends", "lokal-secret"),
        ("backends", ""),
        ("temperature", "3.75"),
        ("temperature", "hot-secret"),
        ("top_p", "0"),
        ("top_p", "0.009"),
        ("max_tokens", "1.5"),
        ("max_tokens", "many-secret"),
        ("system_prompt", "secret" * 4000),
        ("max_tokens", "0"),
        ("seed", "-13"),
        ("seed", "4294967296"),
        ("threads", "0"),
        ("dtype", "float13"),
        ("quantization", "3bit"),
        ("vllm_base_url", "ftp://secret"),
        ("vllm_base_url", "10.9.8.7:8000"),
        ("connect_timeout_s", "0"),
        ("idle_timeout_s", "nan"),
        ("trust_remote_code", "perhaps"),
        ("language", "tlh"),
        ("model", ""),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"STEADY_CHAT_{name.upper()}", value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    error = caught.value
    assert error.values["setting"] == f"STEADY_CHAT_{name.upper()}"
    reason = error.values["reason"]
    assert isinstance(reason, Reason)
    assert reason.message_id != "reason-not-valid", "it has a sentence of its own"
    chinese = error.sentence(catalogue("zh")).partition("有误：")[2]
    assert re.search("[\u4e00-\u9fff]", chinese)
    assert not re.search("[Ii]nput|should|must", chinese), "the reason is in English"
    if len(value) > 3:
        assert value not in str(error)
        assert value not in repr(error)
    assert error.__cause__ is None
    assert error.__suppress_context__, "the traceback would show the value"


@pytest.mark.parametrize("content", ["model = ", "\x00", "[[", "model = 'a'\nmodel = 'b'"])
def test_a_broken_settings_file_is_named(elsewhere: Path, content: str) -> None:
    (elsewhere / "steady_chat.toml").write_text(content, encoding="utf-8")
    path = str((elsewhere / "steady_chat.toml").resolve())
    assert wrong().values["setting"] in (path, f"{path}:1", f"{path}:2")


def wrong() -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load_settings()
    bare = caught.value.__context__ is None or caught.value.__suppress_context__
    assert bare, "the traceback would show the value"
    return caught.value


def test_the_place_in_a_broken_file_is_told(elsewhere: Path) -> None:
    (elsewhere / "steady_chat.toml").write_text('seed = 1\nmodel = "x\n', encoding="utf-8")
    assert str(wrong().values["setting"]).endswith("steady_chat.toml:2")


@pytest.mark.parametrize("name", ["steady_chat.toml", ".env"])
def test_a_file_in_another_encoding_is_named(elsewhere: Path, name: str) -> None:
    (elsewhere / name).write_bytes("STEADY_CHAT_MODEL='café'".encode("latin-1"))
    error = wrong()
    assert error.values["setting"] == str((elsewhere / name).resolve())
    assert error.values["reason"] == Reason("reason-file-encoding")


def test_a_settings_file_with_a_byte_order_mark_is_read(elsewhere: Path) -> None:
    (elsewhere / "steady_chat.toml").write_text('model = "x"\n', encoding="utf-8-sig")
    assert load_settings().model == "x"


@pytest.mark.parametrize("name", ["nowhere.toml", "steady_chat.toml"])
def test_a_settings_file_that_was_named_must_be_there(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (elsewhere / "sub").mkdir()
    monkeypatch.setenv("STEADY_CHAT_SETTINGS_FILE", f"sub/{name}")
    error = wrong()
    assert error.values["reason"] == Reason("reason-file-missing")
    assert "STEADY_CHAT_SETTINGS_FILE" in str(error)
    assert str((elsewhere / "sub" / name).resolve()) in str(error)
    monkeypatch.setenv("STEADY_CHAT_SETTINGS_FILE", "steady_chat.toml")
    assert wrong().values["reason"] == Reason("reason-file-missing")
    monkeypatch.setenv("STEADY_CHAT_SETTINGS_FILE", "sub")
    assert "IsADirectoryError" in str(wrong())
    monkeypatch.setenv("STEADY_CHAT_SETTINGS_FILE", "")
    assert load_settings().model == "embedded"


@pytest.mark.parametrize(
    ("line", "key", "nearest"),
    [
        ("modle = 'secret'", "modle", "model"),
        ("vllm_baseurl = 'secret'", "vllm_baseurl", "vllm_base_url"),
        ("STEADY_CHAT_MODEL = 'secret'", "STEADY_CHAT_MODEL", "model"),
        ("[chat]\nmodel = 'secret'", "chat", None),
        ("zzz.model = 'secret'", "zzz", None),
    ],
)
def test_a_misspelt_key_in_the_settings_file_is_named(
    elsewhere: Path, line: str, key: str, nearest: str | None
) -> None:
    path = elsewhere / "steady_chat.toml"
    path.write_text(f"# mine\n{line}\n", encoding="utf-8")
    error = wrong()
    assert error.values["setting"] == f"{key} ({path.resolve()}:2)"
    if nearest:
        assert error.values["reason"] == Reason(
            "reason-unknown-entry-nearest", {"nearest": nearest}
        )
    else:
        assert error.values["reason"] == Reason("reason-unknown-entry")
    assert "secret" not in str(error)


def test_a_variable_that_is_no_setting_is_logged_by_its_name_only(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (elsewhere / "steady_chat.toml").write_text("seed = 3\n", encoding="utf-8")
    (elsewhere / ".env").write_text(
        f"STEADY_CHAT_TEMPRATURE={SECRET}\nOTHER=1\nSTEADY_CHAT_SEED=4\n", encoding="utf-8"
    )
    monkeypatch.setenv("STEADY_CHAT_VLLM_KEY", SECRET)
    monkeypatch.setenv("STEADY_CHAT_MODEL", "x")
    monkeypatch.setenv("STEADY_CHAT_SETTINGS_FILE", "steady_chat.toml")
    assert load_settings().seed == 4
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert [record.getMessage().split()[0] for record in caplog.records] == [
        "STEADY_CHAT_TEMPRATURE",
        "STEADY_CHAT_VLLM_KEY",
    ]
    assert ".env" in caplog.records[0].getMessage()
    assert SECRET not in caplog.text


def test_a_wrong_value_is_told_with_the_place_that_it_comes_from(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml, dotenv = elsewhere / "steady_chat.toml", elsewhere / ".env"
    toml.write_text("seed = 1\ntemperature = 99\n", encoding="utf-8")
    assert wrong().values["setting"] == f"temperature ({toml.resolve()}:2)"
    dotenv.write_text("\n\nexport STEADY_CHAT_TEMPERATURE='98'\n", encoding="utf-8")
    assert wrong().values["setting"] == f"STEADY_CHAT_TEMPERATURE ({dotenv.resolve()}:3)"
    monkeypatch.setenv("STEADY_CHAT_TEMPERATURE", "97")
    error = wrong()
    assert error.values["setting"] == "STEADY_CHAT_TEMPERATURE"
    assert error.values["reason"] == Reason("reason-at-most", {"limit": 2.0})


def test_the_values_that_may_be_chosen_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_CHAT_DTYPE", "float13")
    allowed = "auto, bfloat16, float16, float32"
    assert wrong().values["reason"] == Reason("reason-one-of", {"allowed": allowed})


@pytest.mark.parametrize(
    "address",
    [
        f"http://me:{SECRET}@gpu-box:9000/v1",
        f"http://gpu-box:9000/v1?key={SECRET}",
    ],
)
def test_a_password_in_the_address_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("STEADY_CHAT_VLLM_BASE_URL", address)
    settings = load_settings()
    assert settings.vllm_base_url == address
    assert SECRET not in f"{settings!r} {settings} {settings.shown()}"
    assert settings.shown()["vllm_base_url"] == "http://gpu-box:9000/v1"


def test_every_setting_can_be_shown_as_it_would_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_CHAT_VLLM_API_KEY", SECRET)
    shown = load_settings().shown()
    assert list(shown) == list(Settings.model_fields)
    assert shown["backends"] == "local,vllm"
    assert shown["trust_remote_code"] == "false"
    assert shown["seed"] == ""
    assert shown["temperature"] == "0.7"
    assert set(shown["vllm_api_key"]) == {"*"}


def test_the_key_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_CHAT_VLLM_API_KEY", SECRET)
    settings = load_settings()
    assert settings.vllm_api_key is not None
    assert settings.vllm_api_key.get_secret_value() == SECRET
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert SECRET not in shown


SERVERS = f"""
[[servers]]
name = "gpu-1"
base_url = "http://me:{SECRET}@gpu-1:8000/v1"
api_key = "{SECRET}"

[[servers]]
name = "gpu-2"
base_url = "http://gpu-2:8000/v1"
model = "Qwen"
"""


def test_several_servers_can_be_named(elsewhere: Path) -> None:
    (elsewhere / "steady_chat.toml").write_text(SERVERS, encoding="utf-8")
    settings = load_settings()
    assert [server.name for server in settings.all_servers()] == ["gpu-1", "gpu-2"]
    assert settings.server().name == "gpu-1"
    assert settings.server("gpu-2").model == "Qwen"
    key = settings.server("gpu-1").api_key
    assert key is not None
    assert key.get_secret_value() == SECRET
    with pytest.raises(KeyError):
        settings.server("gpu-3")


def test_servers_may_be_json_in_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_CHAT_SERVERS", '[{"name": "a", "base_url": "https://a/v1"}]')
    assert load_settings().server().base_url == "https://a/v1"
    monkeypatch.setenv("STEADY_CHAT_SERVERS", "")
    assert load_settings().servers == ()


def test_without_named_servers_there_is_the_single_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_CHAT_VLLM_BASE_URL", f"http://me:{SECRET}@gpu-box:9000/v1")
    monkeypatch.setenv("STEADY_CHAT_VLLM_API_KEY", SECRET)
    monkeypatch.setenv("STEADY_CHAT_VLLM_MODEL", "m")
    (server,) = load_settings().all_servers()
    assert (server.name, server.model) == ("gpu-box:9000", "m")
    assert server.api_key is not None
    assert SECRET not in f"{server!r} {server}"


def test_no_secret_of_a_named_server_is_shown(elsewhere: Path) -> None:
    (elsewhere / "steady_chat.toml").write_text(SERVERS, encoding="utf-8")
    settings = load_settings()
    assert SECRET not in f"{settings!r} {settings} {settings.shown()} {settings.server()!r}"
    assert settings.shown()["servers"] == (
        "gpu-1 (http://gpu-1:8000/v1), gpu-2 (http://gpu-2:8000/v1)"
    )


@pytest.mark.parametrize("address", ["http://[::1:8000/v1", "http://", "http://:80/v1", "gpu-box"])
def test_an_address_that_is_none_is_told_with_its_setting(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("STEADY_CHAT_VLLM_BASE_URL", address)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert caught.value.values == {
        "setting": "STEADY_CHAT_VLLM_BASE_URL",
        "reason": Reason("reason-not-an-address"),
    }
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("told", "stop"),
    [("[END]", ("[END]",)), ("[/INST]", ("[/INST]",)), ('["a", "b"]', ("a", "b")), ("", ())],
)
def test_stop_strings_are_one_or_a_list(
    monkeypatch: pytest.MonkeyPatch, told: str, stop: tuple[str, ...]
) -> None:
    monkeypatch.setenv("STEADY_CHAT_STOP", told)
    assert load_settings().stop == stop


@pytest.mark.parametrize(
    ("told", "place", "reason"),
    [
        ("not json", "", Reason("reason-value-not-json")),
        ('{"name": "a"}', "", Reason("reason-list")),
        ("[3]", " · 1", Reason("reason-object")),
        ('[{"name": "a"}]', " · 1 · base_url", Reason("reason-missing")),
        ('[{"name": "", "base_url": "http://a"}]', " · 1 · name", Reason("reason-empty")),
        (
            '[{"name": "a", "base_url": "gpu"}]',
            " · 1 · base_url",
            Reason("reason-not-an-address"),
        ),
        (
            '[{"name": "a", "base_url": "http://a", "key": "s"}]',
            " · 1 · key",
            Reason("reason-unknown-entry"),
        ),
        (
            '[{"name": "a", "base_url": "http://a"}, {"name": "a", "base_url": "http://b"}]',
            "",
            Reason("reason-same-name", {"name": "a"}),
        ),
    ],
)
def test_a_wrong_server_is_told_with_its_place(
    monkeypatch: pytest.MonkeyPatch, told: str, place: str, reason: Reason
) -> None:
    monkeypatch.setenv("STEADY_CHAT_SERVERS", told)
    assert wrong().values == {"setting": f"STEADY_CHAT_SERVERS{place}", "reason": reason}


def test_settings_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError):
        load_settings().model = "other"  # type: ignore[misc]


def test_every_setting_says_what_it_is_for() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_backends_can_be_made_from_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    from llm.vllm_backend import VllmBackend

    monkeypatch.setenv("STEADY_CHAT_VLLM_BASE_URL", "http://gpu-box:9000")
    monkeypatch.setenv("STEADY_CHAT_VLLM_API_KEY", SECRET)
    monkeypatch.setenv("STEADY_CHAT_VLLM_SLOTS", "7")
    backend = VllmBackend.from_settings(load_settings())
    assert backend.url == "http://gpu-box:9000/v1"
    assert backend.slots == 7
    assert backend.server == "gpu-box:9000"
    backend.close()


MODELS = """
model = "embedded"

[[models]]
model = "Qwen/Qwen2.5-7B-Instruct"
name = "Qwen, small"
quantization = "4bit"
threads = 4

[[models]]
model = "/models/phi-4"
"""


def test_more_models_may_be_named_each_with_what_differs(elsewhere: Path) -> None:
    (elsewhere / "steady_chat.toml").write_text(MODELS, encoding="utf-8")
    first, second = load_settings().models
    assert (first.called, first.quantization, first.threads) == ("Qwen, small", "4bit", 4)
    assert (second.called, second.quantization, second.dtype) == ("phi-4", None, None)
    assert load_settings().shown()["models"] == (
        "Qwen, small (Qwen/Qwen2.5-7B-Instruct), phi-4 (/models/phi-4)"
    )


@pytest.mark.parametrize(
    ("told", "place", "why"),
    [
        ("[{", "STEADY_CHAT_MODELS", "it isn’t valid JSON"),
        ('[{"name": "x"}]', "STEADY_CHAT_MODELS · 1 · model", "it is missing"),
        (
            '[{"model": "a/b"}, {"model": "a/b", "threads": 0}]',
            "STEADY_CHAT_MODELS · 2 · threads",
            "it must be 1 or more",
        ),
        (
            '[{"model": "a/b", "quantization": "3bit"}]',
            "STEADY_CHAT_MODELS · 1 · quantization",
            "it must be one of: ",
        ),
        ('[{"model": "a/b", "quant": "4bit"}]', "STEADY_CHAT_MODELS · 1 · quant", "no such entry"),
        (
            '[{"model": "a/b"}, {"model": "c/b"}]',
            "STEADY_CHAT_MODELS",
            "the name “b” is there twice",
        ),
    ],
)
def test_a_wrong_model_is_named_with_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, told: str, place: str, why: str
) -> None:
    monkeypatch.setenv("STEADY_CHAT_MODELS", told)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert f"“{place}”" in str(caught.value)
    assert why in str(caught.value)


def test_model_folders_are_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_CHAT_MODEL_FOLDERS", "/models, ~/more ,")
    assert load_settings().model_folders == (Path("/models"), Path("~/more"))


@pytest.mark.parametrize(("told", "meant"), [("", None), ("30", 30), ("0.5", 0.5)])
def test_a_model_stays_in_memory_unless_a_time_is_set(
    monkeypatch: pytest.MonkeyPatch, told: str, meant: float | None
) -> None:
    monkeypatch.setenv("STEADY_CHAT_UNLOAD_AFTER_MIN", told)
    assert load_settings().unload_after_min == meant


@pytest.mark.parametrize(
    "url", [f"http://:{SECRET}@host", f"{SECRET}", "redis://", "localhost:6379"]
)
def test_what_is_no_address_of_a_redis_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("STEADY_CHAT_REDIS_URL", url)
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert refused.value.values["setting"] == "STEADY_CHAT_REDIS_URL"
    for language in ("en", "zh"):
        said = refused.value.sentence(catalogue(language))
        assert "redis://" in said
        assert SECRET not in said
