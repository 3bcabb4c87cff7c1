"""Amounts as Kubernetes writes them (500m, 1.5Gi), for backends that want plain numbers, and the amounts by default."""

import re
from decimal import Decimal
from types import MappingProxyType

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.text import shortened

REQUESTS = MappingProxyType({"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "256Mi"})
LIMITS = MappingProxyType({"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi"})

_FORM = re.compile(r"(\d+(?:\.\d+)?)(m|k|[MGTPE]|[KMGTPE]i)?")
_UNITS = {"": Decimal(1), "m": Decimal("0.001"), "k": Decimal(1000)}
_UNITS |= {letter: Decimal(1000) ** power for power, letter in enumerate("MGTPE", 2)}
_UNITS |= {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}


def bytes_of(quantity: str) -> int:
    """Raises UsageFault."""
    return int(_amount(quantity))


def cores_of(quantity: str) -> float:
    """Raises UsageFault."""
    return float(_amount(quantity))


def _amount(quantity: str) -> Decimal:
    found = _FORM.fullmatch(quantity)
    if found is None or not (amount := Decimal(found[1]) * _UNITS[found[2] or ""]):
        raise UsageFault(f"{shortened(quantity, 40)!r} is no amount for a sandbox: write it like 500m, 2 or 1Gi.")
    return amount
