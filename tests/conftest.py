"""Makes the cases' checks explain themselves when they fail, and what was captured fit to be sent."""

import gc
import os
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

pytest.register_assert_rewrite(
    "tests.contracts.sandboxes",
    "tests.contracts.queues.cases",
    "tests.contracts.queues.stage",
    "tests.contracts.storage.cases",
    "tests.contracts.storage.stage",
    "tests.agent.stage",
)

from tests.contracts.queues.backends.ministack import REGION, Ministack, serving, use  # noqa: E402 - after that
from tests.contracts.storage.backends import azure  # noqa: E402 - after that
from tests.contracts.storage.backends import google as googles  # noqa: E402 - after that
from tests.failure_report import shorten  # noqa: E402 - after that
from tests.thoroughly import ALL, spread_cases, tries  # noqa: E402 - after that

# `make test` plays the same examples each time, so that red means a change; `make thorough` plays others each time.
settings.register_profile("hummingbird", max_examples=tries(1000), deadline=None, derandomize=not ALL)
settings.load_profile("hummingbird")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as behind a shell's `&`: every process that a test starts
    signal.signal(signal.SIGINT, signal.default_int_handler)  # would inherit that

for name in (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
):  # this machine's certificates are no default of ours
    os.environ.pop(name, None)

gc.disable()  # while modules are read nothing is garbage, and looking for some takes a fifth of the time


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to `make thorough` what is marked, and most rows of long tables. Play the long ones first."""
    items.sort(key=lambda item: "tests/simulation/" not in item.nodeid)
    if ALL:
        return
    kept = spread_cases([item for item in items if not item.get_closest_marker("thorough")])
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
        items[:] = kept


def pytest_collection_finish() -> None:
    gc.freeze()  # what was read stays: tests that collect garbage need not look through it each time
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tests log half a character on purpose; what a test's process tells of it, the first one must be able to read."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    if item.config.get_verbosity() < 2:
        shorten(report)
    return report


@pytest.fixture(scope="session")
def _ministack_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    with serving(tmp_path_factory.mktemp("ministack")) as server:
        yield server


@pytest.fixture(scope="module")
def ministack(_ministack_server: Ministack) -> Iterator[Ministack]:
    """A stand-in of AWS; whoever uses it has to say where it is, and takes names of buckets that nobody else does."""
    with pytest.MonkeyPatch.context() as patch:
        use(patch)
        yield _ministack_server


@pytest.fixture(scope="module")
def cloud(ministack: Ministack) -> Iterator[Ministack]:
    """One that everything of ours finds by the environment, as it would in a pod."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            patch.setenv(name, REGION)
        patch.setenv("AWS_ENDPOINT_URL", ministack.endpoint)
        yield ministack


@pytest.fixture(scope="session")
def _azurite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azure.Azurite]:
    with azure.serving(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture(scope="module")
def azurite(_azurite_server: azure.Azurite) -> Iterator[azure.Azurite]:
    """Microsoft's emulator of Azure's blobs, found by the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _azurite_server.surroundings.items():
            patch.setenv(name, value)
        yield _azurite_server


@pytest.fixture(scope="session")
def _google_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[googles.Google]:
    with googles.serving(tmp_path_factory.mktemp("google")) as server:
        yield server


@pytest.fixture(scope="module")
def google(_google_server: googles.Google) -> Iterator[googles.Google]:
    """A stand-in of Google's Cloud Storage, found by the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _google_server.surroundings.items():
            patch.setenv(name, value)
        yield _google_server
