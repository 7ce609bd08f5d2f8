"""A plain function, with a helper, a constant and a pattern at the module's level."""

import re
from collections import Counter
from typing import Dict, List  # noqa: UP035

from taskweaver.plugin import register_plugin

WORD = re.compile(r"\w+")
_calls = 0


def words(text: str) -> List[str]:  # noqa: UP006
    return [word.lower() for word in WORD.findall(text)]


@register_plugin
def word_count(text: str, top: int = 3) -> Dict[str, int]:  # noqa: UP006
    """The words that occur most."""
    global _calls
    _calls += 1
    return dict(Counter(words(text)).most_common(top))
