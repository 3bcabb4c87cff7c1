"""How `doctor` looks: one line a finding as soon as it is known, or one JSON document."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import click

from hummingbird.assembly.doctor.examination import examination
from hummingbird.assembly.doctor.finding import Finding, Standing
from hummingbird.assembly.sandboxes import Chosen
from hummingbird.config.load import find

_COLOURS = {Standing.OK: "green", Standing.WARN: "yellow", Standing.FAIL: "red", Standing.SKIP: "bright_black"}


def run(
    config: str | None,
    *,
    as_json: bool,
    try_model: bool,
    host: str,
    sandbox: str | None,
    context: str,
    namespace: str,
) -> int:
    path = find(config, os.environ, Path.cwd())
    chosen = Chosen(sandbox or "", context, namespace)
    findings = asyncio.run(_examined(path, _nothing if as_json else _line, chosen, try_model=try_model, host=host))
    counts = Counter(finding.standing for finding in findings)
    click.echo(_document(findings) if as_json else f"\n{_verdict(counts)}")
    return 1 if counts[Standing.FAIL] else 0


async def _examined(
    path: Path | None, tell: Callable[[Finding], None], chosen: Chosen, *, try_model: bool, host: str
) -> list[Finding]:
    found: list[Finding] = []
    async with aclosing(examination(path, os.environ, try_model=try_model, chosen=chosen, host=host)) as findings:
        async for finding in findings:
            tell(finding)
            found.append(finding)
    return found


def _line(finding: Finding) -> None:
    standing = click.style(f"{finding.standing:<4}", fg=_COLOURS[finding.standing])
    click.echo(f"{standing}  {finding.part}: {finding.sentence}")


def _nothing(finding: Finding) -> None:
    """A document is printed at the end."""


def _verdict(counts: Counter[Standing]) -> str:
    if counts[Standing.FAIL]:
        return f"{_things(counts[Standing.FAIL])} to mend before it works."
    if counts[Standing.WARN]:
        return f"It works; {_things(counts[Standing.WARN]).lower()} to look at."
    return "Everything works."


def _things(count: int) -> str:
    return "One thing" if count == 1 else f"{count} things"


def _document(findings: list[Finding]) -> str:
    checks = [{"part": one.part, "standing": one.standing, "sentence": one.sentence} for one in findings]
    return json.dumps({"ok": all(one.standing != Standing.FAIL for one in findings), "checks": checks}, indent=2)
