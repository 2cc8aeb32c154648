"""README's settings table, made from the settings themselves: `python -m tests.settings_table`."""

from __future__ import annotations

from typing import Literal, get_args, get_origin

from llm.settings import Settings


def rows() -> dict[str, tuple[str, str]]:
    """Variable name to its default as README writes it, and its description."""
    return {
        f"STEADY_CHAT_{name.upper()}": (_default(name), _described(name))
        for name, field in Settings.model_fields.items()
    }


def markdown() -> str:
    """The English table's lines below its head."""
    return "\n".join(
        f"| `{name}` | {default} | {description} |"
        for name, (default, description) in rows().items()
    )


def _described(name: str) -> str:
    field = Settings.model_fields[name]
    values = choices(name)
    allowed = f" One of {', '.join(f'`{value}`' for value in values)}." if values else ""
    return (field.description or "") + allowed


def choices(name: str) -> tuple[str, ...]:
    """The values of a setting that takes one of a few words."""
    annotation = Settings.model_fields[name].annotation
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _default(name: str) -> str:
    value = Settings.model_fields[name].default
    if name in ("data_dir", "database_url", "redis_url") or value in (None, "", (), {}):
        return ""
    if isinstance(value, tuple):
        return f"`{','.join(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


if __name__ == "__main__":
    print(markdown())
