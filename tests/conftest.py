"""Makes the cases' checks explain themselves when they fail."""

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite(
    "tests.contracts.sandboxes", "tests.contracts.queues.cases", "tests.contracts.queues.stage", "tests.agent.stage"
)

from tests.contracts.queues.backends.ministack import REGION, SURROUNDINGS, Ministack, serving  # noqa: E402 - after that


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    """A stand-in of AWS; whoever uses it has to say where it is."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SURROUNDINGS.items():
            patch.setenv(name, value)
        with serving(tmp_path_factory.mktemp("ministack")) as server:
            yield server


@pytest.fixture(scope="module")
def cloud(ministack: Ministack) -> Iterator[Ministack]:
    """One that everything of ours finds by the environment, as it would in a pod."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            patch.setenv(name, REGION)
        patch.setenv("AWS_ENDPOINT_URL", ministack.endpoint)
        yield ministack
