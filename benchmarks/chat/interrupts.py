"""How long an interrupt takes: until `say` has returned, until the next message is answered, and until every
process that the command had started is gone. In one process with the chat as it is put together for a terminal, its
vendor a stand-in, in a session of thousands of entries; the commands ignore SIGTERM and scatter into other sessions.
Processes are watched by their numbers. Pods are those of the lab's Kubernetes: containers of podman on this machine,
behind an API server of its own.
"""

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from benchmarks.chat import long_session
from benchmarks.chat.spread import told, verdict
from hummingbird.app.chat import ChatPartner, create_partner
from hummingbird.app.chat_context import ChatOptions
from hummingbird.app.sandboxes import SandboxChoice
from hummingbird.chat.garbage_collection import freeze_garbage_collector
from hummingbird.config.loader import load_config
from hummingbird.core.events import EntryRecorded, RunEvent, TextDelta
from hummingbird.core.journal import ModelFailed
from tests.journeys.chat.processes import Process, running
from tests.sandbox_image import sandbox_image
from tests.sandboxes.kube import LabStage
from tests.standins.kubernetes.server import KubernetesLab
from tests.standins.vendors.script import Call, Fault, Script, Step, Turn
from tests.standins.vendors.server import VendorLab

PROMPT_S = 0.2
SLEEPS = ("sleep 7300", "sleep 7301", "sleep 7302")
STUBBORN = '(trap "" TERM; sleep 7301) & setsid sleep 7302 & sleep 7300'
LONG = Turn(text=" ".join(f"word{number}" for number in range(400)))
NEXT = Turn(text="The next one is answered.")
PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Deed:
    """What is interrupted. `gone_s`: in which time its processes are to be gone; None: there are none."""

    name: str
    step: Step
    under_way: Callable[[list[RunEvent], VendorLab], bool]
    gone_s: float | None = None
    backend: str = "bubblewrap"


@dataclass(slots=True)
class Taken:
    returned: list[float]
    answered: list[float]
    gone: list[float]


def _streams(events: list[RunEvent], _: VendorLab) -> bool:
    return any(isinstance(event, TextDelta) for event in events)


def _asked(_: list[RunEvent], lab: VendorLab) -> bool:
    return lab.script.remaining == 1


def _rests(events: list[RunEvent], _: VendorLab) -> bool:
    return any(isinstance(event, EntryRecorded) and isinstance(event.entry, ModelFailed) for event in events)


def _runs(_: list[RunEvent], __: VendorLab) -> bool:
    lines = [one.line for one in running(b"sleep 730")]
    return all(any(line.startswith(sleep.encode()) for line in lines) for sleep in SLEEPS)


def deeds(*, containers: bool) -> Iterator[Deed]:
    yield Deed("model call, streaming", Fault("stall", after=40, turn=LONG), _streams)
    yield Deed("model call, silent", Fault("slow", delay_s=600, turn=NEXT), _asked)
    yield Deed("back-off, 60 s wanted", Fault("status", status=503, retry_after="60"), _rests)
    yield Deed("command of the host", Turn(calls=(Call("terminal", {"command": STUBBORN}),)), _runs, 0.2)
    sandboxed = Turn(calls=(Call("sandbox_exec", {"command": STUBBORN}),))
    yield Deed("command in bubblewrap", sandboxed, _runs, 0.2)
    if containers:
        yield Deed("command in podman", sandboxed, _runs, 2.0, "podman")
        yield Deed("command in a pod (lab's Kubernetes)", sandboxed, _runs, 2.0, "k8s")


def report(times: int, *, containers: bool) -> None:
    print(f"## Chat: from an interrupt until…, {times} times each, in a session of {long_session.ENTRIES:,} entries\n")
    print(
        "| under way | `say` returned ms: p50, most | next answer ms: p50, most | processes gone ms: p50, most "
        "| targets | all of them |"
    )
    print("|---|--:|--:|--:|---|---|")
    for deed in deeds(containers=containers):
        taken = asyncio.run(_measured(deed, times))
        gone = told(taken.gone) if taken.gone else "—"
        target = f"{PROMPT_S * 1000:.0f} ms" + (f", gone {deed.gone_s * 1000:,.0f} ms" if deed.gone_s else "")
        met = verdict(met=max(taken.returned) <= PROMPT_S and max(taken.gone, default=0) <= (deed.gone_s or 0))
        row = f"| {deed.name} | {told(taken.returned)} | {told(taken.answered)} | {gone} | {target} | {met} |"
        print(row, flush=True)
    print()


async def _measured(deed: Deed, times: int) -> Taken:
    """The sandbox is there before; each time is a message of its own in one conversation."""
    taken = Taken([], [], [])
    events: list[RunEvent] = []
    warm = Turn(calls=(Call("sandbox_exec", {"command": "true"}),))
    with _home(deed.backend) as (parts, lab):
        partner = await create_partner(_watched(parts, events), resume=long_session.SESSION)
        freeze_garbage_collector()  # as the terminal does
        try:
            lab.script.extend(warm, NEXT)
            await partner.say("begin")
            for _ in range(times):
                await _once(deed, partner, lab, events, taken)
        finally:
            await partner.close()
    return taken


async def _once(deed: Deed, partner: ChatPartner, lab: VendorLab, events: list[RunEvent], taken: Taken) -> None:
    lab.script.extend(deed.step, NEXT)
    events.clear()
    saying = asyncio.create_task(partner.say("do it"))
    async with asyncio.timeout(PATIENCE_S):
        while not deed.under_way(events, lab):  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    watch = Watch(running(b"sleep 730") if deed.gone_s else [])
    began = watch.begin()
    partner.interrupt()
    await saying
    taken.returned.append(time.perf_counter() - began)
    outcome = await partner.say("and now?")
    taken.answered.append(time.perf_counter() - began)
    assert outcome.text == NEXT.text, outcome
    if deed.gone_s:
        taken.gone.append(await asyncio.to_thread(watch.gone))


class Watch:
    """When the last of them ended, seen from a thread of its own."""

    def __init__(self, processes: list[Process]) -> None:
        self._left = processes
        self._began = self._ended = 0.0
        self._thread = threading.Thread(target=self._look, daemon=True)

    def begin(self) -> float:
        self._began = time.perf_counter()
        self._thread.start()
        return self._began

    def _look(self) -> None:
        while self._left and time.perf_counter() - self._began < PATIENCE_S:
            time.sleep(0.002)
            self._left = [one for one in self._left if one.alive]
        self._ended = time.perf_counter()

    def gone(self) -> float:
        self._thread.join()
        assert not self._left, self._left
        return self._ended - self._began


@contextmanager
def _home(backend: str) -> Iterator[tuple[ChatOptions, VendorLab]]:
    settings = {"sandbox": {"backend": backend, **({} if backend == "bubblewrap" else {"image": sandbox_image()})}}
    allowed = {"permissions": [{"action": "allow", "tool": "terminal"}]}
    with tempfile.TemporaryDirectory() as folder, VendorLab(Script()) as lab, _cluster(Path(folder), backend) as more:
        long_session.write(Path(folder) / "state")
        file, work = Path(folder) / "hummingbird.yaml", Path(folder) / "work"
        work.mkdir()
        file.write_text(yaml.safe_dump({"settings": settings, "chat": allowed}))
        environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "HUMMINGBIRD_HOME": str(Path(folder) / "state"),
            "OPENAI_BASE_URL": lab.openai_url,
            "OPENAI_API_KEY": "k-123456789",
            **more,
        }
        configuration = load_config(file, environment)
        chosen = SandboxChoice(backend=backend)
        yield (
            ChatOptions(
                configuration=configuration,
                environment=environment,
                workspace=work,
                chosen=chosen,
                model="openai:gpt-6.1-terra",
            ),
            lab,
        )


@contextmanager
def _cluster(folder: Path, backend: str) -> Iterator[dict[str, str]]:
    """What the environment says of one."""
    if backend != "k8s":
        yield {}
        return
    with KubernetesLab() as lab:
        stage = LabStage(lab, folder, sandbox_image())
        program = Path(stage.site.kubectl).parent if stage.site.kubectl else folder
        try:
            yield {"KUBECONFIG": str(stage.kubeconfig), "PATH": f"{program}{os.pathsep}{os.environ['PATH']}"}
        finally:
            stage.clear()


def _watched(parts: ChatOptions, events: list[RunEvent]) -> ChatOptions:
    def observe(event: RunEvent) -> None:
        events.append(event)

    return replace(parts, on_event=observe)
