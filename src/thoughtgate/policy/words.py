"""Splitting a tool's name into words: ``deleteUserFiles`` contains delete, user and files.

Servers write ``delete_file``, ``delete-file``, ``files.delete`` or ``deleteFile``; a rule for the
word "delete" matches all of these, but not ``undeleted``.
"""

import re
from typing import Final

# Several capitals are one word, but the last of them begins the next word: ``HTTPServer``.
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")


def split_words(name: str) -> frozenset[str]:
    """Return the words of a name in lower case, split at punctuation and at camel case."""
    return frozenset(word.lower() for word in _WORD.findall(name))
