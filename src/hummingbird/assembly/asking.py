"""What somebody wants of `hummingbird run`, as orders (G6): the workflow and the merge request that were named.

Nobody is asked anything here: what only GitLab knows is filled in by those who may ask it.
"""

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from hummingbird.assembly.session_copies import Saved
from hummingbird.config.configuration import Applied, Configuration
from hummingbird.config.kinds import PROJECT
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.orders import Cause, Overrides, WorkOrder
from hummingbird.domain.text import shortened

NUMBERS = ("iid", "pipeline_id")
TEXTS = ("sha", "target_branch", "message")
_LIKE = "Write it like '{\"iid\": 7}'."


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The merge request to look at; empty and 0 for what is not known."""

    iid: int
    sha: str = ""
    pipeline_id: int = 0
    target_branch: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """An order, and what its model is told besides."""

    order: WorkOrder
    target_branch: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is nothing to run, and why."""

    reason: str

    @property
    def sentence(self) -> str:
        return f"Nothing was run: {self.reason.rstrip('.')}."


def applied_for(configuration: Configuration, workflow: str, project: str) -> Applied:
    """Raises UsageFault, which names those that there are."""
    if not PROJECT.fullmatch(project):
        raise UsageFault(f"{shortened(project, 80)!r} is no project's path: write it like group/project.")
    if workflow not in configuration.workflows:
        known = ", ".join(configuration.workflows) or "none"
        raise UsageFault(f"There is no workflow {workflow!r} in {configuration.name}. Those that there are: {known}.")
    applied = configuration.applied(workflow, project)
    if applied is None:
        known = ", ".join(configuration.workflows[workflow].projects) or "none"
        raise UsageFault(
            f"The workflow {workflow} is not for {project!r}. Projects that {configuration.name} has it for: {known}."
        )
    return applied


def subject_of(event: str) -> Subject:
    """What --event says. Raises UsageFault."""
    said = _object(event)
    if unknown := sorted(set(said) - {*NUMBERS, *TEXTS}):
        raise UsageFault(f"--event has a key {unknown[0]!r}; it knows {', '.join((*NUMBERS, *TEXTS))}.")
    for key in NUMBERS:
        if type(said.get(key, 0)) is not int or said.get(key, 0) < 0:
            raise UsageFault(f"--event has {key} as something else than a number. {_LIKE}")
    for key in TEXTS:
        if not isinstance(said.get(key, ""), str):
            raise UsageFault(f"--event has {key} as something else than a text.")
    if not said.get("iid"):
        raise UsageFault(f"--event does not say which merge request: it needs its number as iid. {_LIKE}")
    return Subject(**said)


def _object(event: str) -> dict[str, Any]:
    try:
        said = json.loads(event)
    except (ValueError, RecursionError) as error:
        raise UsageFault(f"The event is no JSON. {_LIKE}") from error
    if not isinstance(said, dict):
        raise UsageFault(f"The event is no JSON object. {_LIKE}")
    return said


def order(
    workflow: str, project: str, subject: Subject, *, cause: Cause = Cause.COMMAND, overrides: Overrides | None = None
) -> Asked:
    """A session of its own, whatever ran before (R7). A person asks, so a person is answered: as by a command."""
    made = WorkOrder(
        id=uuid4().hex,
        session_id=uuid4().hex,
        cause=cause,
        workflow=workflow,
        project=project,
        mr_iid=subject.iid,
        sha=subject.sha,
        pipeline_id=subject.pipeline_id,
        message=subject.message,
        overrides=overrides or Overrides(),
        forced=True,
    )
    return Asked(made, subject.target_branch)


def reply(workflow: str, project: str, subject: Subject, saved: Saved, message: str, *, overrides: Overrides) -> Asked:
    """Goes on with a session that was saved. Raises UsageFault if that one is about something else."""
    about = saved.about
    elsewhere = about.project and about.project.casefold() != project.casefold()
    if elsewhere or (about.mr_iid and subject.iid and about.mr_iid != subject.iid):
        raise UsageFault(
            f"What goes on there, {saved.place}, is about {about.project}!{about.mr_iid}; name that project and merge "
            "request, or another session."
        )
    made = WorkOrder(
        id=uuid4().hex,
        session_id=saved.session_id,
        cause=Cause.REPLY,
        workflow=workflow,
        project=project,
        mr_iid=subject.iid or about.mr_iid,
        sha=about.sha or subject.sha,
        message=message,
        overrides=overrides,
        forced=True,
    )
    return Asked(made)
