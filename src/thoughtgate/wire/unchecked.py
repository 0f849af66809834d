"""Fast construction of named tuples that are created for every call.

``unchecked(Record, (type, at, server, session, body))`` equals ``Record(type, at, server,
session, body)`` but takes half the time, because a named tuple's constructor is a Python
function that only calls ``tuple.__new__``. All members must be given in order; their number is
not checked.
"""

from typing import Final

unchecked: Final = tuple.__new__
