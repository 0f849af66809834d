"""Values on the path of every call, made without the detour through their constructors.

``made(Record, (type, at, server, session, body))`` is ``Record(type, at, server, session,
body)`` in half the time: the constructor of a named tuple is a function of Python that only
calls this one. All members are given, in their order; nobody checks how many there are.
"""

from typing import Final

made: Final = tuple.__new__
