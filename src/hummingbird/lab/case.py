"""A case: a folder with all that GitLab, Konflux and Testing Farm know of one failure or one merge request.

It is read by the stand-ins, each its own part. What stands there is short: whoever serves it adds what the real API
would add. `{{gitlab}}`, `{{konflux}}`, `{{kubearchive}}`, `{{testing_farm}}` and `{{artifacts}}` stand for the
addresses under which they are served.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cases"


class NoSuchCase(Exception):
    """Says which cases there are."""


@dataclass(frozen=True, slots=True)
class Case:
    """`folder` holds case.json. `addresses`: what stands for each of the placeholders."""

    folder: Path
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def about(self) -> Mapping[str, Any]:
        found = self.json("case.json")
        assert isinstance(found, dict)
        return found

    def json(self, path: str, otherwise: Any = None) -> Any:
        """What a file of the case says, `otherwise` if there is none. Raises ValueError for one that is not JSON."""
        if not (self.folder / path).is_file():
            return otherwise
        try:
            return json.loads(self.text(path))
        except ValueError as error:
            raise ValueError(f"{path} of the case {self.name} is not JSON: {error}. Mend it.") from error

    def text(self, path: str) -> str:
        return self.filled((self.folder / path).read_text(encoding="utf-8"))

    def filled(self, text: str) -> str:
        for name, address in self.addresses.items():
            text = text.replace("{{" + name + "}}", address)
        return text

    def files(self, path: str, pattern: str = "*") -> list[Path]:
        """The files below a folder of the case, in order; none where there is no such folder."""
        return sorted(file for file in (self.folder / path).rglob(pattern) if file.is_file())


def names() -> list[str]:
    return sorted(found.parent.name for found in FOLDER.glob("*/case.json"))


def find(name: str) -> Case:
    """One of ours by its name, or anybody's by its folder. Raises NoSuchCase."""
    for folder in (FOLDER / name, Path(name)):
        if (folder / "case.json").is_file():
            return Case(folder.resolve())  # "." has no name
    raise NoSuchCase(f"There is no case {name!r}: name one of {', '.join(names())}, or a folder with a case.json.")
