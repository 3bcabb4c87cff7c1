"""All mutations: for each invariant, walls that are taken away one at a time."""

from tests.mutations.kept_in import KEPT_IN
from tests.mutations.kept_out import KEPT_OUT

INVARIANTS = tuple(f"I{number}" for number in range(1, 11))
TABLE = (*KEPT_IN, *KEPT_OUT)
