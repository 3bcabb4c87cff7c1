"""The Testing Farm source: three tools that read test requests and their artifacts.

Reports and logs are passed on as they are; `hummingbird.evidence` interprets them.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from hummingbird.core.protocols.tools import ToolToken

PUBLIC_ARTIFACTS = "https://artifacts.dev.testing-farm.io/"
REDHAT_ARTIFACTS = "https://artifacts.osci.redhat.com/testing-farm/"
KNOWN_ARTIFACTS = (REDHAT_ARTIFACTS, PUBLIC_ARTIFACTS)


@dataclass(frozen=True, slots=True)
class TestingFarmSettings:
    """What an operator configures.

    Attributes:
        artifacts: Addresses below which artifacts may be read; links are built from the first. The hosts of the known
            ones may be in a private network, as that of the internal ranch is.
        token: An API token; requests can be read without one.
        private_addresses: Other hosts with artifacts may be in a private network too, or be this machine.
        ca_bundle: A file with certificate authorities; the system's when empty.
    """

    __test__ = False  # the class name looks like a test to pytest

    api_url: str = "https://api.testing-farm.io"
    artifacts: tuple[str, ...] = KNOWN_ARTIFACTS
    token: ToolToken | None = None
    private_addresses: bool = False
    ca_bundle: str = ""

    @property
    def private_hosts(self) -> frozenset[str]:
        """The hosts of the known addresses that are among those with artifacts."""
        used = [base.rstrip("/") for base in self.artifacts]
        return frozenset(urlsplit(known).hostname or "" for known in KNOWN_ARTIFACTS if known.rstrip("/") in used)
