"""A forge before the lab's GitLab: pauses are noted and not waited for, and the clock stands where a test puts it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hummingbird.core.masking import Secrets
from hummingbird.gitlab.write.project_writer import GitLabProjectWriter, GitLabProjectWriters
from hummingbird.gitlab.write.protocol import GitLabWriter, GitLabWriters, OrchestratorToken
from hummingbird.lab.gitlab.records import Note
from hummingbird.lab.gitlab.server import GitLabLab

PREFIX = "hummingbird-session"
PROJECT = "acme/widgets"
MR = "/api/v4/projects/acme%2Fwidgets/merge_requests/7"
NOW = 1_772_445_600.0  # 2026-03-02T10:00:00Z


@dataclass
class Bench:
    forges: GitLabProjectWriters
    forge: GitLabProjectWriter
    pauses: list[float] = field(default_factory=list)


@asynccontextmanager
async def forging(
    url: str, token: str = "bot", now: Callable[[], float] = lambda: NOW, **more: Any
) -> AsyncIterator[Bench]:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    settings = {"secrets": Secrets(), "marker_prefix": PREFIX, "now": now, "pause": pause, **more}
    forges = GitLabProjectWriters(url, lambda project: OrchestratorToken(token), **settings)
    as_port: GitLabWriters = forges
    forge: GitLabWriter = as_port.writer_for(PROJECT)
    assert isinstance(forge, GitLabProjectWriter)
    yield Bench(forges, forge, pauses)
    await forges.close()


def written(lab: GitLabLab) -> list[Note]:
    """What the bot has written, oldest first."""

    def found(note: Note) -> bool:
        return lab.world.user(note.author_id).username in ("bot", "stranger") and not note.system

    return lab.run_in_server(lambda world: sorted(filter(found, world.merge_request.notes), key=lambda note: note.id))


def asked(lab: GitLabLab, method: str, ending: str) -> int:
    return sum(each.method == method and each.path.endswith(ending) for each in lab.requests)
