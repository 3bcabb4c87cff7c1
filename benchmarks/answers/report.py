"""Print calls, characters and required signals for each case of the lab: `python -m benchmarks.answers.report`.

The plain way is scripted: read the merge request, list the jobs of its pipeline, read the log of each failed job whole,
as an agent with the tools of a GitLab MCP server does. Signals are the lines that the case calls evidence.
"""

import asyncio
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2

from hummingbird.app.mcp_server import FailureAnswers
from hummingbird.config.loader import load_config
from hummingbird.lab.case import LabCase, case_names, find_case
from hummingbird.lab.scene import Scene

CONFIGURATION = """
settings: {{gitlab_url: '{url}'}}
workflows:
  analyze: {{prompt: look.md, projects: {{'*': {{}}}}, data_sources: {{gitlab: {{token_env: READ_TOKEN}}}}}}
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """What one way took: calls, characters that the agent reads, and the share of signals in them."""

    calls: int
    characters: int
    signals: float


async def ask_hummingbird(scene: Scene, signals: list[str]) -> Spent:
    """Ask one question."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "look.md").write_text("Look.")
        (folder / "hummingbird.yaml").write_text(CONFIGURATION.format(url=scene.url("gitlab")))
        environment = {"READ_TOKEN": scene.read_token, "HUMMINGBIRD_HOME": str(folder / "state")}
        configuration = load_config(folder / "hummingbird.yaml", environment)
        answers = FailureAnswers(configuration, environment, reads_files=False)
        world = scene.worlds.gitlab
        said = await answers.why_did_pipeline_fail(project=world.project.path, merge_request=world.merge_request.iid)
    return Spent(1, len(said), found_share(signals, said))


async def read_everything(scene: Scene, signals: list[str]) -> Spent:
    """Read what an agent without evidence reads."""
    world = scene.worlds.gitlab
    base = f"{scene.url('gitlab')}/api/v4/projects/{world.project.path.replace('/', '%2F')}"
    async with httpx2.AsyncClient(headers={"PRIVATE-TOKEN": scene.read_token}, timeout=60) as client:
        details = await client.get(f"{base}/merge_requests/{world.merge_request.iid}")
        pipeline = details.json()["head_pipeline"]["id"]
        jobs = await client.get(f"{base}/pipelines/{pipeline}/jobs", params={"per_page": 100})
        texts = [details.text, jobs.text]
        failed = [job["id"] for job in jobs.json() if job["status"] == "failed"]
        texts += [(await client.get(f"{base}/jobs/{number}/trace")).text for number in failed]
    whole = "\n".join(texts)
    return Spent(len(texts), len(whole), found_share(signals, whole))


def found_share(signals: list[str], text: str) -> float:
    """Return the share of signals whose words stand in the text; spaces and escapes do not count."""
    plain = "".join(text.split())
    return sum("".join(signal.split()) in plain for signal in signals) / len(signals)


def signals_of(case: LabCase) -> list[str]:
    expected = case.description.get("expected", {})
    assert isinstance(expected, Mapping)
    return list(expected.get("evidence", ()))


async def main() -> None:
    print(
        "| case | calls | characters | signals | plain calls | plain characters | plain signals | characters ÷ plain |"
    )
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in case_names():
        case = find_case(name)
        if not (signals := signals_of(case)) or name == "konflux-build-and-test":  # its failure is not in GitLab
            continue
        with Scene(case) as scene:
            ours, plain = await ask_hummingbird(scene, signals), await read_everything(scene, signals)
        ratios.append(ours.characters / plain.characters)
        print(
            f"| {name} | {ours.calls} | {ours.characters:,} | {ours.signals:.0%} | {plain.calls} | "
            f"{plain.characters:,} | {plain.signals:.0%} | {ratios[-1]:.3f} |"
        )
    print(json.dumps({"mean ratio of characters": round(sum(ratios) / len(ratios), 3), "cases": len(ratios)}))


if __name__ == "__main__":
    asyncio.run(main())
