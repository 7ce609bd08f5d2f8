import re
from collections import Counter


def count_words(text, top=None):
    """Return the words and how often they occur, the most frequent ones first."""
    words = re.findall(r"\w+", text.lower())
    return dict(Counter(words).most_common(top))
