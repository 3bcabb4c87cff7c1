"""What the Testing Farm source is given: where its API is, and below which addresses artifacts may be read."""

from dataclasses import dataclass

from hummingbird.ports.source import ToolToken

PUBLIC_ARTIFACTS = "https://artifacts.dev.testing-farm.io/"
REDHAT_ARTIFACTS = "https://artifacts.osci.redhat.com/testing-farm/"


@dataclass(frozen=True, slots=True)
class TestingFarmSettings:
    """`artifacts` is the allow-list (D7). `token`: requests can be read without one. `private_addresses`: the
    artifacts' hosts may be in one's own network, as the internal ranch's are. `ca_bundle`: a file; without one, the
    system's certificates."""

    __test__ = False  # pytest would take it for a test

    api_url: str = "https://api.testing-farm.io"
    artifacts: tuple[str, ...] = (PUBLIC_ARTIFACTS, REDHAT_ARTIFACTS)
    token: ToolToken | None = None
    private_addresses: bool = False
    ca_bundle: str = ""
