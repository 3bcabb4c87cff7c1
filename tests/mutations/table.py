"""All mutations: for each invariant, walls that are taken away one at a time."""

from tests.mutations.cited import CITED
from tests.mutations.kept_in import KEPT_IN
from tests.mutations.kept_out import KEPT_OUT

INVARIANTS = tuple(f"I{number}" for number in range(1, 12))  # the last one: a note quotes nothing that was not fetched
TABLE = (*KEPT_IN, *KEPT_OUT, *CITED)
