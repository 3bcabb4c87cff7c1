"""A GitLab for one case, on a port of its own.

    with GitLabLab(find("flaky-test")) as lab:
        gitlab.Gitlab(lab.url, private_token=lab.read_token)
        lab.ask(lambda world: len(world.merge_request.discussions))

Only the lab knows its address before it is served, so the case is read when the lab is entered.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

from hummingbird.lab.case import Case
from hummingbird.lab.gitlab.app import application
from hummingbird.lab.gitlab.hooks.sending import hooks_of
from hummingbird.lab.gitlab.loading import EXPIRED_TOKEN, JOB_TOKEN, NARROW_TOKEN, READ_TOKEN, WRITE_TOKEN, load
from hummingbird.lab.gitlab.store import Seen, World
from hummingbird.lab.serving import Serving

NAME = "gitlab"
Answer = TypeVar("Answer")


class GitLabLab:
    """A context manager. `addresses`: where the case's other stand-ins are served."""

    read_token = READ_TOKEN
    write_token = WRITE_TOKEN
    expired_token = EXPIRED_TOKEN
    narrow_token = NARROW_TOKEN
    job_token = JOB_TOKEN

    def __init__(self, case: Case, *, port: int = 0, addresses: Mapping[str, str] | None = None) -> None:
        self._case = case
        self._addresses = {**case.addresses, **(addresses or {})}
        self._serving = Serving({NAME: self._answer}, {NAME: port}, name="gitlab-lab")
        self._world: World | None = None
        self._application: ASGIApp | None = None

    @property
    def url(self) -> str:
        return self._serving.url(NAME)

    @property
    def world(self) -> World:
        """For planning faults and the like; to look at what requests change meanwhile, `ask`."""
        assert self._world is not None, "Enter the lab first: its case is read then."
        return self._world

    @property
    def requests(self) -> list[Seen]:
        """Those that were answered, in that order."""
        return self.ask(lambda world: list(world.requests))

    def ask(self, question: Callable[[World], Answer]) -> Answer:
        """The answer, found while no request changes anything."""
        return self._serving.ask(lambda: question(self.world))

    def __enter__(self) -> Self:
        self._serving.__enter__()
        self._world = load(replace(self._case, addresses={**self._addresses, NAME: self.url}))
        self._application = application(self._world)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._world is not None:
            hooks_of(self._world).close()  # first: who receives a hook may ask back
        self._serving.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._application is not None
        await self._application(scope, receive, send)
