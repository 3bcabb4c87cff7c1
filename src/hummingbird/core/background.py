"""Define what a run knows about its subject when it starts, beyond what the model is told.

The journal keeps it with the start of the run, so that lists and grids can be made without asking GitLab. Titles,
branches and names of jobs are written by others.
"""

import msgspec

from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.verdicts import ObservedFailure

BACKGROUND_JOBS = 200  # jobs that are kept of one pipeline
BACKGROUND_PIPELINES = 5
BACKGROUND_FAILURES = 30
BACKGROUND_CHARS = 300  # of a title or a name; GitLab takes at most 255, so nothing is cut before it is masked


class JobStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a job of a pipeline ended, in GitLab's words; `retried` says that it ran more than once."""

    name: str
    status: str
    id: int = 0
    retried: bool = False


class PipelineStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The jobs of a pipeline as a run saw them; `mr_iid` is 0 for a pipeline of a branch."""

    pipeline_id: int
    branch: str = ""
    mr_iid: int = 0
    sha: str = ""
    jobs: tuple[JobStatus, ...] = ()


class RunBackground(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about the subject of a run when it starts.

    `cause` is the `OrderCause`, `asked_at` the time of the event or of the question. `pipelines` are that of the
    subject and the newest ones of the target branch.
    """

    cause: str = ""
    asked_at: float = 0.0
    title: str = ""
    branch: str = ""
    target_branch: str = ""
    pipelines: tuple[PipelineStatus, ...] = ()
    failures: tuple[ObservedFailure, ...] = ()


def plain_name(name: str) -> str:
    """Return a name that others chose in the form that a background keeps: on one line, short, and storable."""
    return shorten_line(" ".join(replace_surrogates(name).split()), BACKGROUND_CHARS)
