"""The contract on Azure (S1), as azurite serves it."""

import pytest

from hummingbird.adapters.stores.objects import objects_at
from tests.contracts.stores.backends.azure import Azurite
from tests.contracts.stores.stage import Case, Stage
from tests.contracts.stores.suite import CASES
from tests.thoroughly import one_per_topic


@pytest.mark.parametrize(
    "case", one_per_topic(CASES, "looking", "swapping", "listing", "flows", "trouble"), ids=lambda case: case.__name__
)
async def test_azure_keeps_the_contract(azurite: Azurite, case: Case) -> None:
    await Stage(azurite).play(case)


async def test_azures_emulator_is_found_by_its_own_variables_s1(
    azurite: Azurite, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = azurite.address()
    await objects_at(address).put("a", b"1")
    for name in azurite.surroundings:
        if name.startswith("AZURE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", azurite.endpoint)
    assert await objects_at(address).get("a") == b"1"
