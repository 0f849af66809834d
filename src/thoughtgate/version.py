"""The version of this package, in a separate module that imports nothing.

Modules that report the version import it from here: the root package imports the API for type
checkers, so importing the root from within the package would create an import cycle.
"""

__version__ = "0.1.0"
