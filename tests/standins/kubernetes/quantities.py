"""Quantities as manifests write them: 500m, 64Mi, 1.5Gi, 2e3."""

import re
from decimal import Decimal

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(m|k|M|G|T|Ki|Mi|Gi|Ti|[eE][+-]?\d+)?")
_SCALE = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
}


def quantity(value: str | int | float) -> Decimal:
    """Raises ValueError with the real API's sentence for what is none."""
    found = _FORM.fullmatch(str(value))
    if found is None:
        raise ValueError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    number, unit = Decimal(found[1]), found[2] or ""
    if unit[:1] in {"e", "E"} and unit[1:]:
        return number.scaleb(int(unit[1:]))
    return number * _SCALE[unit]
