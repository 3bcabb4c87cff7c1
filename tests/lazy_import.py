"""Modules that are read when a test first uses them.

Each of pytest's processes collects all tests: a vendor's SDK that a test module imports at its top is read by all of
them, and takes up to two seconds, also where its tests run in another one.
"""

from importlib import import_module
from typing import Any


class LazyModule:
    """Stand for a module, and import it at the first attribute that somebody wants."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest asks whether it is a fixture, while it collects
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
