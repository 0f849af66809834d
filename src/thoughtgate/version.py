"""The version of this package, in a module of its own that imports nothing.

Modules that report it import it from here: the root package names the API for type checkers, so
importing the root from within would close a ring of imports.
"""

__version__ = "0.1.0"
