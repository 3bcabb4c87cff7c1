"""A context of `doctor` on a lab's GitLab, and single groups of checks tried on it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from textwrap import indent

from hummingbird.app.doctor import CheckFinding, CheckStatus, DoctorCheck, DoctorContext
from hummingbird.app.doctor.runner import run_checks
from hummingbird.config.loader import load_config

OK, WARN, FAIL, SKIP = CheckStatus.OK, CheckStatus.WARN, CheckStatus.FAIL, CheckStatus.SKIP
Checks = Callable[[DoctorContext], Iterable[DoctorCheck]]


def written(folder: Path, settings: str, workflow: str = "") -> Path:
    """A configuration with one workflow, whose sections are given in YAML."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "look.md").write_text("Look.\n")
    path = folder / "hummingbird.yaml"
    below = indent(f"prompt: look.md\n{workflow}", "    ")
    path.write_text(f"settings:\n{indent(settings or '{}', '  ')}\nworkflows:\n  look:\n{below}\n")
    return path


def doctor_context(
    folder: Path,
    settings: str,
    workflow: str = "",
    environment: Mapping[str, str] | None = None,
    *,
    try_model: bool = False,
) -> DoctorContext:
    """Its state is in `folder`, unless the environment says otherwise."""
    configuration = load_config(written(folder, settings, workflow), None)
    return DoctorContext(configuration, {"HUMMINGBIRD_HOME": str(folder / "state"), **(environment or {})}, try_model)


def tried(checks: Checks, of: DoctorContext, check_s: float = 30) -> list[CheckFinding]:
    async def conduct() -> list[CheckFinding]:
        return [finding async for finding in run_checks(list(checks(of)), check_s)]

    return asyncio.run(conduct())


def only(findings: list[CheckFinding]) -> CheckFinding:
    (found,) = findings
    return found
