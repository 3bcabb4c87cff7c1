"""What `doctor` asks of Testing Farm: for a request that nobody ever made, over the same road as the tools."""

from hummingbird.adapters.sources.testing_farm.farm import Farm
from hummingbird.adapters.sources.testing_farm.settings import TestingFarmSettings
from hummingbird.domain.errors import NothingThere

_NOBODYS = "00000000-0000-4000-8000-000000000000"


async def check_answers(settings: TestingFarmSettings) -> None:
    """Raises UsageFault, CredentialRefused, SourceError."""
    farm = Farm(settings)
    try:
        await farm.request(_NOBODYS)
    except NothingThere:
        pass  # which is the right answer
    finally:
        await farm.close()
