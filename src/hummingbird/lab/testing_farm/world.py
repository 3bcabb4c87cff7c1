"""What Testing Farm knows of a case: requests as its API tells them, and the files that their runs left behind.

A case's requests are short; what the API adds to each is filled in here. Read anew for every request, so that
addresses may become known late. Facts: section 5.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from hummingbird.lab.case import Case
from hummingbird.lab.planned import Faults, Seen

Raw = dict[str, Any]
_USER = "5f1d2c3b-0a49-4e8d-8c55-91b7a2e4d6f0"
_NOT_BEGUN = ("new", "queued")
_SAFE_NAME = re.compile(r"[\w-]+")


@dataclass
class TestingFarmWorld:
    """`added` by tests, by id, come before the case's own."""

    __test__ = False  # pytest would take it for a test

    case: Case
    added: dict[str, Raw] = field(default_factory=dict)
    api_faults: Faults = field(default_factory=Faults)
    artifacts_faults: Faults = field(default_factory=Faults)
    requests: list[Seen] = field(default_factory=list)

    def request(self, id_: str) -> Raw | None:
        """None where there is none."""
        found = self.added.get(id_)
        if found is None and _SAFE_NAME.fullmatch(id_):
            found = self.case.json(f"testing_farm/requests/{id_}.json")
        return None if found is None else completed(id_, found, self.case)

    def artifact(self, path: str) -> Path | None:
        """The file or folder at an address; None where there is none, and for what points out of the folder."""
        folder = (self.case.folder / "testing_farm" / "artifacts").resolve()
        found = (folder / path.lstrip("/")).resolve()
        inside = found.is_relative_to(folder) and found != folder
        return found if inside and found.exists() else None

    def content(self, file: Path) -> bytes:
        content = file.read_bytes()
        for name, address in self.case.addresses.items():
            content = content.replace(b"{{" + name.encode() + b"}}", address.encode())
        return content


def load(case: Case) -> TestingFarmWorld:
    return TestingFarmWorld(case)


def completed(id_: str, given: Raw, case: Case) -> Raw:
    """As the API tells it. `queued_time` and `run_time` are missing unless given: so they are in some answers."""
    state = given.get("state", "complete")
    born = _spelt(str(case.about.get("now", "2026-03-02T10:00:00Z")))
    artifacts = f"{case.addresses.get('artifacts', '')}/{id_}"
    run = None if state in _NOT_BEGUN else {"console": None, "stages": None, "artifacts": artifacts}
    return {
        "id": id_,
        "user_id": _USER,
        "test": {"fmf": None, "script": None, "sti": None},
        "state": state,
        "environments_requested": [],
        "notes": [],
        "settings": None,
        "user": {"webpage": None},
        "created": born,
        "updated": born,
        **given,
        "result": _result(given.get("result"), artifacts),
        "run": given.get("run", run),
    }


def _result(given: Mapping[str, Any] | None, artifacts: str) -> Raw | None:
    """Facts 5: null while nothing is known; the xunit is inline in old answers and null in others."""
    if given is None:
        return None
    whole: Raw = {"overall": None, "summary": None, "xunit": None, "xunit_url": f"{artifacts}/results.xml", **given}
    return whole


def _spelt(moment: str) -> str:
    """Facts 5: no zone, though it is UTC."""
    return datetime.fromisoformat(moment).strftime("%Y-%m-%dT%H:%M:%S.%f")
