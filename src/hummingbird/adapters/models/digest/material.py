"""Everything that a conversation has brought to light, sorted: jobs, tests, runs, logs, changed files, troubles.

Rebuilt from the request each time, so it is the same after a crash and after other models' turns. Decides nothing.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hummingbird.adapters.models.digest.asking import changed_files, failed_records, failed_tests, looks_into
from hummingbird.adapters.models.digest.facts import Facts, from_person, from_records, requests_in
from hummingbird.adapters.models.digest.judged import Told, told
from hummingbird.adapters.models.digest.logs import Log
from hummingbird.adapters.models.digest.order import Order, ordered
from hummingbird.adapters.models.digest.reading import Made, Result, Shown, calls_made
from hummingbird.adapters.models.digest.records import (
    Case,
    Job,
    cases,
    cluster_objects,
    jobs,
    objects,
    scalar,
    walk,
)
from hummingbird.adapters.models.digest.roles import Kind, Offer, Role
from hummingbird.domain.messages import Message, UserMessage
from hummingbird.evidence.regions import Line
from hummingbird.evidence.tekton.objects import read as read_tekton
from hummingbird.evidence.tekton.runs import Run

LOGS = {Role.JOB_LOG, Role.SEARCH, Role.RANGE, Role.POD_LOG, Role.TEST_LOG, Role.RESULTS}
_IDENTITIES = (Kind.CHANGE, Kind.COMMIT, Kind.PIPELINE, Kind.JOB)
_SUBJECTS = (Kind.JOB, Kind.POD, Kind.ADDRESS, Kind.REQUEST)
_CHANGED = re.compile(r'"(?:new|old)_path": ?"([^"\\]{1,400})"|^(?:\+\+\+|---) [ab]/(.{1,400})$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that could not be read: which tool, about what, and what it said."""

    tool: str
    about: str
    said: str


@dataclass
class Material:
    offers: Sequence[Offer]
    made: list[Made]
    facts: Facts
    named: frozenset[str] = frozenset()  # jobs that a person asked about by their ids
    jobs: list[Job] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    order: Order = field(default_factory=Order)
    runs: tuple[Run, ...] = ()
    logs: dict[str, Log] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    branch_red: bool | None = None
    troubles: list[Trouble] = field(default_factory=list)
    told: Told = field(default_factory=Told)  # by rules, in the order

    def offer(self, name: str) -> Offer | None:
        return next((offer for offer in self.offers if offer.tool.name == name), None)

    def playing(self, role: Role) -> list[Offer]:
        return [offer for offer in self.offers if offer.role is role]

    def count(self, role: Role) -> int:
        return sum(offer is not None and offer.role is role for offer in (self.offer(made.name) for made in self.made))

    def results(self, *roles: Role) -> list[Result]:
        found = ((self.offer(made.name), made.result) for made in self.made)
        return [result for offer, result in found if offer is not None and offer.role in roles and not result.error]

    def answer(self, command: str) -> str | None:
        """What the sandbox said to this command; None when it was not asked."""
        said = [made.result.text for made in self.made if made.arguments.get("command") == command]
        return said[-1] if said else None


def gathered(messages: Sequence[Message], offers: Sequence[Offer], since: int = 0) -> Material:
    """`since`: where the task at hand begins. What was read before that is used if it was about the same thing."""
    facts = Facts()
    said = [message.text for message in messages[since:] if isinstance(message, UserMessage)]
    for text in said:
        facts.join(from_person(text))
    before, now = calls_made(messages[:since]), calls_made(messages[since:])
    material = Material(offers, [*(before if _about(before, facts) else ()), *now], facts)
    material.named = frozenset(facts.of(Kind.JOB))
    material.told = told(value for text in said for value in objects(text))
    _read_records(material, said)
    _read_logs(material)
    _read_requests(material)
    _read_change(material)
    _read_troubles(material)
    return material


def _about(made: Iterable[Made], facts: Facts) -> bool:
    """Whether some of these calls asked for what is asked for now."""
    wanted = {value for kind in _IDENTITIES for value in facts.of(kind)}
    return not wanted.isdisjoint(scalar(value) for each in made for value in each.arguments.values())


def subject(offer: Offer, made: Made) -> str:
    """What a call was about: the id of a job, the name of a pod, an address."""
    for kind in _SUBJECTS:
        for name, meant in offer.kinds.items():
            if meant is kind and (value := scalar(made.arguments.get(name))):
                return value
    return ""


def _read_records(material: Material, said: Iterable[str]) -> None:
    texts = [result.text for result in _with_extracts(material, Role.JOBS)]
    values = [value for text in [*said, *texts] for value in objects(text)]
    material.jobs = jobs(values)
    material.order = ordered(material.jobs)
    material.cases = cases(v for r in _with_extracts(material, Role.TEST_REPORT) for v in objects(r.text))
    listed = _with_extracts(material, Role.PIPELINE_RUNS, Role.TASK_RUNS)
    material.runs = read_tekton(cluster_objects(v for result in listed for v in objects(result.text))).runs
    for result in material.results(Role.CHANGE):
        from_records(result.text, material.facts, Kind.COMMIT, Kind.PIPELINE, Kind.BRANCH)
    for text in texts:
        from_records(text, material.facts, Kind.PIPELINE)
    for request in requests_in(job.url for job in material.jobs):
        material.facts.add(Kind.REQUEST, request)


def _with_extracts(material: Material, *roles: Role) -> list[Result]:
    """Results of these roles; of those in files, what was picked out of them."""
    found: list[Result] = []
    for result in material.results(*roles):
        picked = [material.answer(ask(path)) for path in result.paths for ask in (failed_records, failed_tests)]
        found += [result, *(Result((Shown(text),)) for text in picked if text)]
    return found


def _read_logs(material: Material) -> None:
    for made in material.made:
        offer = material.offer(made.name)
        if offer is None or offer.role not in LOGS:
            continue
        key = subject(offer, made)
        log = material.logs.setdefault(key, Log(key, _kind(offer.role)))
        if made.result.error:
            log.errors.append(made.result.error)
        log.looks += offer.role is Role.RANGE
        for each in made.result.parts:
            log.add(each)
        if offer.role in {Role.SEARCH, Role.RANGE}:
            log.whole = False
    for log in material.logs.values():
        for path in log.paths:
            _read_looks(material, log, path)


def _read_requests(material: Material) -> None:
    """Konflux says in the log of a failed task, and nowhere else, which request of Testing Farm it waited for."""
    pods = [log for log in material.logs.values() if log.kind == _kind(Role.POD_LOG)]
    for request in requests_in(line.text for log in pods for line in log.lines()):
        material.facts.add(Kind.REQUEST, request)


def _read_looks(material: Material, log: Log, path: str) -> None:
    for made in material.made:
        command = made.arguments.get("command")
        if isinstance(command, str) and looks_into(command, path):
            log.looks += 1
            for each in made.result.parts[:1]:
                log.learn(_own_lines(each))


def _own_lines(shown: Shown) -> Iterable[Line]:
    """What a command of ours printed has the numbers of the log; a preview of that numbers the numbers."""
    return shown.lines() if shown.whole else Shown("\n".join(line.text for line in shown.lines())).lines()


def _kind(role: Role) -> str:
    return {Role.POD_LOG: "pod", Role.TEST_LOG: "test log", Role.RESULTS: "request"}.get(role, "job")


def _read_change(material: Material) -> None:
    for result in material.results(Role.DIFF):
        answers = [material.answer(changed_files(path)) or "" for path in result.paths]
        for text in [result.text, *answers]:
            plain = re.sub(r"(?m)^\d{1,9}: ?", "", text)
            material.changed |= {one or other for one, other in _CHANGED.findall(plain)}
    for result in material.results(Role.PIPELINES):
        if (red := _newest_failed(result.text, material.facts.of(Kind.BRANCH))) is not None:
            material.branch_red = red


def _newest_failed(text: str, branches: Sequence[str]) -> bool | None:
    """Whether the newest finished pipeline of the target branch failed."""
    for value in objects(text):
        for raw in walk(value):
            status, ref = raw.get("status"), raw.get("ref")
            if status in {"failed", "success"} and (ref is None or ref in branches):
                return bool(status == "failed")
    return None


def _read_troubles(material: Material) -> None:
    for made in material.made:
        if made.result.error:
            offer = material.offer(made.name)
            about = subject(offer, made) if offer is not None else ""
            about = next((job.name for job in material.jobs if job.id and job.id == about), about)
            material.troubles.append(Trouble(made.name, about, made.result.error))
