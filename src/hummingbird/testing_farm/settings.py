"""Settings of the Testing Farm source: where its API is, and below which addresses artifacts may be read."""

from dataclasses import dataclass

from hummingbird.core.protocols.tools import ToolToken

PUBLIC_ARTIFACTS = "https://artifacts.dev.testing-farm.io/"
REDHAT_ARTIFACTS = "https://artifacts.osci.redhat.com/testing-farm/"


@dataclass(frozen=True, slots=True)
class TestingFarmSettings:
    """What an operator configures.

    Attributes:
        artifacts: Addresses below which artifacts may be read.
        token: An API token; requests can be read without one.
        private_addresses: Artifacts may be on hosts of a private network, as those of the internal ranch are.
        ca_bundle: A file with certificate authorities; the system's when empty.
    """

    __test__ = False  # the class name looks like a test to pytest

    api_url: str = "https://api.testing-farm.io"
    artifacts: tuple[str, ...] = (PUBLIC_ARTIFACTS, REDHAT_ARTIFACTS)
    token: ToolToken | None = None
    private_addresses: bool = False
    ca_bundle: str = ""
