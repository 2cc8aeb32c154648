"""What README says about settings is what the settings are, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

from llm.catalogue import FOLDER
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
    commands = r"^(?:make|STEADY_CHAT_\w+=\S+|vllm serve|python3 -m|\.venv/bin/)[^#\n（]*"
    assert re.findall(commands, english, re.M) == re.findall(commands, chinese, re.M)
    assert english.count("\n## ") == chinese.count("\n## ")


def test_every_file_that_readme_points_to_is_there() -> None:
    for name in ("README.md", "README.zh.md"):
        for target in re.findall(r"\]\(((?!http)[^)#]+)\)", (ROOT / name).read_text("utf-8")):
            assert (ROOT / target).exists(), (name, target)


def test_what_readme_quotes_from_the_page_is_what_the_page_says() -> None:
    for name, language in (("README.md", "en"), ("README.zh.md", "zh")):
        text = (ROOT / name).read_text(encoding="utf-8")
        said = (FOLDER / f"{language}.ftl").read_text(encoding="utf-8").replace("’", "'")
        quoted = re.findall(r"^\| [^|*]*(?<!\*)\*([^*|]+)\*(?!\*)[^|]* \|", text, re.M)
        assert len(quoted) > 5
        for quote in quoted:
            assert quote.removesuffix(" …") in said, (name, quote)


def test_no_placeholder_is_left() -> None:
    for name in ("README.md", "README.zh.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.findall(r"^[A-Z_]{4,}$", text, re.M), name
