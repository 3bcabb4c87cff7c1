"""Find failures in logs, test reports and Tekton objects, by rules alone.

Pure code: no I/O and no model. The public names load on first use, so importing the package is cheap.
"""

from importlib import import_module
from typing import Any

__all__ = ["Baseline", "LogPreview", "analyse", "preview"]

_HOME = {
    "Baseline": "hummingbird.evidence.logs.log_preview",
    "LogPreview": "hummingbird.evidence.logs.log_preview",
    "analyse": "hummingbird.evidence.logs.log_analysis",
    "preview": "hummingbird.evidence.logs.log_preview",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'hummingbird.evidence' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
