"""Finding failures in logs, XML and Tekton objects; pure.

Owns: regions, scores, classes, fingerprints, previews.
May touch: domain.
Never: I/O or a model.

Its few public names are loaded when they are first used.
"""

from importlib import import_module
from typing import Any

__all__ = ["Baseline", "LogPreview", "analyse", "preview"]

_HOME = {
    "Baseline": "hummingbird.evidence.logs.baseline",
    "LogPreview": "hummingbird.evidence.logs.preview",
    "analyse": "hummingbird.evidence.logs.analysing",
    "preview": "hummingbird.evidence.logs.preview",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'hummingbird.evidence' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
