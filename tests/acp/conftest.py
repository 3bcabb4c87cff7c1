"""One process and one editor for all tests of a module: each has a conversation of its own in it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.acp.editor import Desk, Editor, editing
from tests.standins.vendors.script import Script
from tests.standins.vendors.server import VendorLab


@pytest.fixture(scope="module")
def lab() -> Iterator[VendorLab]:
    with VendorLab(Script()) as vendors:
        yield vendors


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(lab: VendorLab, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    folder: Path = tmp_path_factory.mktemp("editor")
    async with editing(lab, folder, forms=True) as desk:
        yield desk


@pytest.fixture
def desk(shared: Desk, lab: VendorLab) -> Iterator[Desk]:
    """With nothing told yet; what the model was to say has been said when the test ends."""
    fresh = Editor()
    shared.editor.choose, shared.editor.form = fresh.choose, fresh.form
    shared.editor.updates.clear()
    shared.editor.questions.clear()
    yield shared
    try:
        lab.script.assert_consumed()
    finally:
        lab.script.clear()  # one test that fails must not fail those after it
