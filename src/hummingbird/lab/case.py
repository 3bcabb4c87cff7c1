"""Load a lab case: a folder with all that GitLab, Konflux and Testing Farm know about a failure or a merge request.

Each stand-in reads its own part. The files are short: the stand-ins add what the real APIs would add. The placeholders
`{{gitlab}}`, `{{konflux}}`, `{{kubearchive}}`, `{{testing_farm}}` and `{{artifacts}}` stand for the addresses under
which they are served.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CASES_FOLDER = Path(__file__).parent / "cases"


class CaseNotFound(Exception):
    """There is no such case; the message lists the cases."""


@dataclass(frozen=True, slots=True)
class LabCase:
    """A case: `folder` holds case.json, `addresses` has the values of the placeholders."""

    folder: Path
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def description(self) -> Mapping[str, Any]:
        """The content of case.json."""
        found = self.read_json("case.json")
        assert isinstance(found, dict)
        return found

    def read_json(self, path: str, otherwise: Any = None) -> Any:
        """Return the content of a JSON file of the case, or `otherwise` if there is none. Raises ValueError."""
        if not (self.folder / path).is_file():
            return otherwise
        try:
            return json.loads(self.read_text(path))
        except ValueError as error:
            raise ValueError(f"{path} of the case {self.name} is not JSON: {error}. Fix it.") from error

    def read_text(self, path: str) -> str:
        """Return the text of a file of the case with addresses filled in."""
        return self.fill_addresses((self.folder / path).read_text(encoding="utf-8"))

    def fill_addresses(self, text: str) -> str:
        """Replace the placeholders by addresses."""
        for name, address in self.addresses.items():
            text = text.replace("{{" + name + "}}", address)
        return text

    def list_files(self, path: str, pattern: str = "*") -> list[Path]:
        """Return the files below a folder of the case, in order; none if there is no such folder."""
        return sorted(file for file in (self.folder / path).rglob(pattern) if file.is_file())


def case_names() -> list[str]:
    """Return the names of the cases that ship with the package."""
    return sorted(found.parent.name for found in CASES_FOLDER.glob("*/case.json"))


def find_case(name: str) -> LabCase:
    """Find a shipped case by its name, or any case by its folder. Raises `CaseNotFound`."""
    for folder in (CASES_FOLDER / name, Path(name)):
        if (folder / "case.json").is_file():
            return LabCase(folder.resolve())  # without resolve(), "." has no name
    raise CaseNotFound(
        f"There is no case {name!r}: name one of {', '.join(case_names())}, or a folder with a case.json."
    )
