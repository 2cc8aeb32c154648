"""How long an answer is given again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm.settings import Settings

DAY_S = 24 * 3600.0
HOUR_S = 3600.0

# What a question is about whose answer is soon another one. What is about now itself (a price, an
# exchange rate, who holds an office) is never kept at all: llm/cacheable.py.
_AGES = re.compile(
    r"\b(versions?|releases?|released|updates?|upgrad(e|es|ing)|deprecat\w+|roadmaps?|changelogs?"
    r"|schedules?|record holder|president|laws?|regulations?|tax(es)?|visas?|fees?|rates?"
    r"|support(ed|s)?)\b"
    r"|版本|更新|升级|弃用|路线图|时间表|日程|总统|总理|首相|主席|政策|法规|法律|税|签证|费用|支持",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CacheTtl:
    """Seconds after which an answer is asked for anew.

    Args:
        usual_s: where nothing else counts. Source of the default: a day for documentation, an
            hour for what ages, as answer caches are commonly set.
        models_s: of models that have their own, by the name a person would say.
        aging_s: the most for a question whose answer ages.
    """

    usual_s: float = DAY_S
    models_s: tuple[tuple[str, float], ...] = ()
    aging_s: float = HOUR_S

    @classmethod
    def from_settings(cls, settings: Settings) -> CacheTtl:
        """As this installation is set up."""
        return cls(
            settings.cache_ttl_h * HOUR_S,
            tuple((name, hours * HOUR_S) for name, hours in settings.cache_model_ttl_h.items()),
            settings.cache_aging_ttl_h * HOUR_S,
        )

    def seconds(self, model: str, question: str) -> float:
        """How long this model's answer to that question is given again."""
        told = dict(self.models_s).get(model, self.usual_s)
        return min(told, self.aging_s) if ages(question) else told


def ages(question: str) -> bool:
    """Whether the answer to it is likely another one before long, in English and Chinese."""
    return _AGES.search(question) is not None
