"""A patient on a lab's GitLab, and single groups of checks tried on it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from textwrap import indent

from hummingbird.assembly.doctor.examination import conducted
from hummingbird.assembly.doctor.finding import Check, Finding, Standing
from hummingbird.assembly.doctor.patient import Patient
from hummingbird.config.load import load

OK, WARN, FAIL, SKIP = Standing.OK, Standing.WARN, Standing.FAIL, Standing.SKIP
Checks = Callable[[Patient], Iterable[Check]]


def written(folder: Path, settings: str, workflow: str = "") -> Path:
    """A configuration with one workflow, whose sections are given in YAML."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "look.md").write_text("Look.\n")
    path = folder / "hummingbird.yaml"
    below = indent(f"prompt: look.md\n{workflow}", "    ")
    path.write_text(f"settings:\n{indent(settings or '{}', '  ')}\nworkflows:\n  look:\n{below}\n")
    return path


def patient(
    folder: Path,
    settings: str,
    workflow: str = "",
    environment: Mapping[str, str] | None = None,
    *,
    try_model: bool = False,
) -> Patient:
    """Its state is in `folder`, unless the environment says otherwise."""
    configuration = load(written(folder, settings, workflow), None)
    return Patient(configuration, {"HUMMINGBIRD_HOME": str(folder / "state"), **(environment or {})}, try_model)


def tried(checks: Checks, of: Patient, check_s: float = 30) -> list[Finding]:
    async def conduct() -> list[Finding]:
        return [finding async for finding in conducted(list(checks(of)), check_s)]

    return asyncio.run(conduct())


def only(findings: list[Finding]) -> Finding:
    (found,) = findings
    return found
