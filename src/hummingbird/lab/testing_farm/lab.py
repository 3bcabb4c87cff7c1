"""Testing Farm of one case, served: the API and the artifacts, each on a port of its own.

with TestingFarmLab(case) as lab:
    lab.artifacts_faults.plan("*/results.xml", Redirect("http://169.254.169.254/latest/"))
"""

from dataclasses import replace
from types import TracebackType
from typing import Self

from hummingbird.lab.case import Case
from hummingbird.lab.planned import Faults, Seen
from hummingbird.lab.serving import Serving
from hummingbird.lab.testing_farm.api import testing_farm_application
from hummingbird.lab.testing_farm.artifacts import artifacts_application
from hummingbird.lab.testing_farm.world import Raw, TestingFarmWorld, load


class TestingFarmLab:
    __test__ = False  # pytest would take it for a test

    def __init__(self, case: Case) -> None:
        self._addresses = dict(case.addresses)
        self.world: TestingFarmWorld = load(replace(case, addresses=self._addresses))
        applications = {
            "testing_farm": testing_farm_application(self.world),
            "artifacts": artifacts_application(self.world),
        }
        self._serving = Serving(applications, name="testing-farm-lab")

    @property
    def api_url(self) -> str:
        """Without the version: requests are below /v0.1."""
        return self._serving.url("testing_farm")

    @property
    def artifacts_url(self) -> str:
        return self._serving.url("artifacts")

    @property
    def api_faults(self) -> Faults:
        return self.world.api_faults

    @property
    def artifacts_faults(self) -> Faults:
        return self.world.artifacts_faults

    @property
    def requests(self) -> list[Seen]:
        """All so far, of both servers, in the order in which they came; after the end too."""
        return list(self.world.requests)

    def add(self, id_: str, request: Raw) -> None:
        """A request beside the case's, or in place of one of them; short, as in a case."""
        self._serving.ask(lambda: self.world.added.update({id_: request}))

    def __enter__(self) -> Self:
        self._serving.__enter__()
        own = {"testing_farm": self.api_url, "artifacts": self.artifacts_url}
        self._addresses.update({name: url for name, url in own.items() if name not in self._addresses})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._serving.close()
