"""Words of a text, in the form in which the shared ledger indexes and searches them.

Case, accents and everything that is neither a letter nor a digit do not matter, as in the ledger
of one machine.
"""

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")


def search_words(text: str) -> list[str]:
    """Return the words of a text in the form in which they are indexed and searched for."""
    if not text.isascii():
        # Decomposed, so that accents become combining marks, which can be left out.
        parts = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in parts if not unicodedata.combining(char))
    return _WORD.findall(text.lower())
