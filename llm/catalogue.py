"""Every sentence the product says, in every language it speaks.

One catalogue for all faces: `llm/locales/<language>.ftl` in Mozilla's Fluent, which brings
plurals and each language's own number format. The tests hold the languages complete.
"""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from fluent.runtime import FluentBundle

LANGUAGES: dict[str, str] = {"en": "English", "zh": "简体中文"}
"""Language code to the language's own name. The first is the one to fall back to."""

_LOCALES = {"en": "en-US", "zh": "zh-CN"}
_BABEL = {language: locale.replace("-", "_") for language, locale in _LOCALES.items()}
FOLDER = Path(__file__).parent / "locales"


def choose_language(locale: str | None) -> str:
    """The catalogue's language nearest to a browser's or system's locale such as `zh-Hans-CN`."""
    code = (locale or "").replace("_", "-").split("-")[0].lower()
    return code if code in LANGUAGES else next(iter(LANGUAGES))


class Catalogue:
    """One language's sentences.

    Thread-safety: read-only after construction; may be shared.
    """

    def __init__(self, language: str, bundle: FluentBundle) -> None:
        self.language = language
        self._bundle = bundle

    def say(self, message_id: str, **values: str | int | float | date) -> str:
        """The sentence, filled in.

        Raises:
            KeyError: there is no such sentence.
            ValueError: the sentence needs a value it wasn't given.
        """
        pattern = self._bundle.get_message(message_id).value
        if pattern is None:
            raise KeyError(message_id)
        text, faults = self._bundle.format_pattern(pattern, values)
        if faults:
            raise ValueError(f"{message_id} ({self.language}): {faults[0]}")
        return str(text)

    def day(self, day: date, *, year: bool) -> str:
        """A date in words, as this language writes it, with its year or without."""
        from babel.dates import format_skeleton

        return str(
            format_skeleton("yMMMMd" if year else "MMMMd", day, locale=_BABEL[self.language])
        )


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language, read once. Unknown languages get the first of LANGUAGES."""
    from babel import Locale
    from fluent.runtime import FluentBundle, FluentResource

    language = language if language in LANGUAGES else next(iter(LANGUAGES))
    ordinal = Locale.parse(_BABEL[language]).ordinal_form
    # No isolation marks: they would be copied along with model names and addresses.
    bundle = FluentBundle(
        [_LOCALES[language]],
        # Fluent's own NUMBER($n, type: "ordinal") isn't in this implementation.
        functions={"ORDINAL": cast("Any", lambda number: ordinal(int(number)))},
        use_isolating=False,
    )
    bundle.add_resource(FluentResource((FOLDER / f"{language}.ftl").read_text(encoding="utf-8")))
    return Catalogue(language, bundle)
