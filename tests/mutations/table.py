"""All mutations: for each invariant, walls that are taken away one at a time."""

from tests.mutations.cited import CITED
from tests.mutations.kept_in import KEPT_IN
from tests.mutations.kept_out import KEPT_OUT

INVARIANTS = (
    "write-token",
    "read-token",
    "sandbox",
    "archives",
    "cluster-role",
    "own-notes",
    "developers-only",
    "addresses",
    "outsiders",
    "notes-cannot-act",
    "citations",
)
TABLE = (*KEPT_IN, *KEPT_OUT, *CITED)
