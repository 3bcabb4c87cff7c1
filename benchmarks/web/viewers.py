"""CPU of the service for a run that nobody watches, and for the same one before many who watch live pages."""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.rivals.setup import ROOT
from benchmarks.service.burst import Size, configuration, send, until_ended, world
from benchmarks.service.crowd import WORKFLOW, Hook
from benchmarks.service.process import serving
from hummingbird.core.orders import session_id_for

SLOTS = 4


@dataclass(frozen=True, slots=True)
class Scale:
    runs: int = 40
    viewers: int = 200
    repeats: int = 5
    delay_s: float = 0.5


FULL, QUICK = Scale(), Scale(runs=4, viewers=20, repeats=1, delay_s=0.1)


def report(scale: Scale) -> None:
    print(f"## Dashboard: CPU of a run with {scale.viewers} viewers of live pages\n")
    print(
        f"{scale.runs} runs at {SLOTS} slots; half of the viewers look at what runs now, half at the runs themselves. "
        f"Whole process of the service, {scale.repeats} interleaved repeats.\n"
    )
    print("| repeat | nobody looks, CPU ms a run | viewers, CPU ms a run | bytes to viewers | ratio |")
    print("|--:|--:|--:|--:|--:|")
    ratios = []
    for repeat in range(scale.repeats):
        order = (0, scale.viewers) if repeat % 2 == 0 else (scale.viewers, 0)
        found = {viewers: measured(scale, viewers) for viewers in order}
        (alone, _), (watched, told) = found[0], found[scale.viewers]
        ratios.append(watched / alone)
        print(f"| {repeat + 1} | {alone:.1f} | {watched:.1f} | {told:,} | {ratios[-1]:.3f}× |", flush=True)
    print(f"\nMedian {median(ratios):.3f}×.\n")


def measured(scale: Scale, viewers: int) -> tuple[float, int]:
    """CPU milliseconds of the service for each run, and what viewers were sent."""
    size = Size(webhooks=scale.runs, slots=(SLOTS,), delay_s=scale.delay_s)
    with tempfile.TemporaryDirectory() as place, world(size) as other:
        given = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": other.where["model"]}
        with serving(Path(place), configuration(other.where["gitlab"], SLOTS), given) as service:
            hooks = other.hooks("failures")
            base = service.url.rsplit("/webhooks", 1)[0]
            with audience(base, Path(place), paths(hooks, viewers)) as told:
                before = service.cpu_s()
                asyncio.run(send(service.url, hooks))
                until_ended(other, service, scale.runs)
                spent = service.cpu_s() - before
    return spent * 1000 / scale.runs, told[0]


def paths(hooks: Sequence[Hook], viewers: int) -> list[str]:
    sessions = [_session(hook) for hook in hooks]
    half = viewers // 2
    return ["/live/runs"] * (viewers - half) + [f"/live/sessions/{sessions[at % len(sessions)]}" for at in range(half)]


def _session(hook: Hook) -> str:
    said = json.loads(hook.body)
    request = said["merge_request"]
    return session_id_for(
        said["project"]["path_with_namespace"], request["iid"], WORKFLOW, said["object_attributes"]["sha"]
    )


@contextmanager
def audience(base: str, place: Path, looked_at: Sequence[str]) -> Iterator[list[int]]:
    """How many bytes they were sent is known at the end."""
    told = [0]
    if not looked_at:
        yield told
        return
    file = place / "paths"
    file.write_text("\n".join(looked_at))
    argv = [sys.executable, "-m", "benchmarks.web.audience", base, str(file)]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline().strip() == "ready"
        try:
            yield told
        finally:
            process.stdin.close()
            told[0] = int(process.stdout.readline() or 0)
