"""Settings: where they come from, which wins, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from llm.errors import SettingsError
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
        ("max_tokens", "0"),
        ("seed", "-13"),
        ("seed", "4294967296"),
        ("threads", "0"),
        ("dtype", "float13"),
        ("quantization", "3bit"),
        ("vllm_base_url", "ftp://secret"),
        ("vllm_base_url", "127.0.0.1:8000"),
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
    assert str(error.values["setting"]).split(".")[0] == name
    assert str(error.values["reason"])
    if len(value) > 3:
        assert value not in str(error)
        assert value not in repr(error)
    assert error.__cause__ is None
    assert error.__suppress_context__, "the traceback would show the value"


@pytest.mark.parametrize("content", ["model = ", "\x00", "[[", "model = 'a'\nmodel = 'b'"])
def test_a_broken_settings_file_is_named(elsewhere: Path, content: str) -> None:
    (elsewhere / "steady_chat.toml").write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert "steady_chat.toml" in str(caught.value)


def test_a_settings_file_in_another_encoding_is_named(elsewhere: Path) -> None:
    (elsewhere / "steady_chat.toml").write_bytes("model = 'café'".encode("latin-1"))
    with pytest.raises(SettingsError):
        load_settings()


def test_the_key_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_CHAT_VLLM_API_KEY", SECRET)
    settings = load_settings()
    assert settings.vllm_api_key is not None
    assert settings.vllm_api_key.get_secret_value() == SECRET
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert SECRET not in shown


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
    backend.close()
