"""What README says about settings is what the settings are, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

from tests.settings_table import markdown, rows

ROOT = Path(__file__).parents[1]


def test_the_english_table_is_the_settings() -> None:
    assert markdown() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_chinese_table_has_the_same_names_and_defaults() -> None:
    text = (ROOT / "README.zh.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(STEADY_CHAT_\w+)` \| (.*?) \| .*[\u4e00-\u9fff].* \|$", text, re.M)
    assert dict(told) == {name: default for name, (default, _) in rows().items()}


def test_both_languages_have_the_same_commands_and_headings() -> None:
    english, chinese = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")
    )
    commands = r"^(?:make|STEADY_CHAT_\w+=\S+|vllm serve|python -m|\.venv/bin/)[^#\n（]*"
    assert re.findall(commands, english, re.M) == re.findall(commands, chinese, re.M)
    assert english.count("\n## ") == chinese.count("\n## ")


def test_every_file_that_readme_points_to_is_there() -> None:
    for name in ("README.md", "README.zh.md"):
        for target in re.findall(r"\]\(((?!http)[^)#]+)\)", (ROOT / name).read_text("utf-8")):
            assert (ROOT / target).exists(), (name, target)
