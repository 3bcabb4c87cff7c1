"""The contract on Azure, as azurite serves it."""

import pytest

from hummingbird.storage.registry import open_object_store
from tests.contracts.storage.backends.azure import Azurite
from tests.contracts.storage.stage import Case, Stage
from tests.contracts.storage.suite import CASES
from tests.thoroughly import one_per_topic


@pytest.mark.parametrize(
    "case", one_per_topic(CASES, "looking", "swapping", "listing", "flows", "trouble"), ids=lambda case: case.__name__
)
async def test_azure_keeps_the_contract(azurite: Azurite, case: Case) -> None:
    await Stage(azurite).play(case)


async def test_azures_emulator_is_found_by_its_own_variables(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    address = azurite.address()
    await open_object_store(address).put("a", b"1")
    for name in azurite.surroundings:
        if name.startswith("AZURE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", azurite.endpoint)
    assert await open_object_store(address).get("a") == b"1"
