"""README's settings table, made from the settings themselves: `python -m tests.settings_table`."""

from __future__ import annotations

from llm.settings import Settings


def rows() -> dict[str, tuple[str, str]]:
    """Variable name to its default as README writes it, and its description."""
    return {
        f"STEADY_CHAT_{name.upper()}": (_default(name), field.description or "")
        for name, field in Settings.model_fields.items()
    }


def markdown() -> str:
    """The English table's lines below its head."""
    return "\n".join(
        f"| `{name}` | {default} | {description} |"
        for name, (default, description) in rows().items()
    )


def _default(name: str) -> str:
    value = Settings.model_fields[name].default
    if name == "data_dir" or value is None or value == "":
        return ""
    if isinstance(value, tuple):
        return f"`{','.join(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


if __name__ == "__main__":
    print(markdown())
