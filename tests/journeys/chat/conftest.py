"""A home with a scripted vendor, and chats that are closed again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chat.window import need_tmux
from tests.journeys.chat.stage import Bird, Home
from tests.standins.vendors.script import Script
from tests.standins.vendors.server import VendorLab


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Everything that the script has must have been asked for."""
    with VendorLab(Script()) as lab:
        here = Home(tmp_path, lab)
        here.configure({})
        yield here
        lab.script.assert_consumed()


@pytest.fixture
def chat(home: Home) -> Iterator[Callable[..., Bird]]:
    need_tmux()
    opened: list[Bird] = []

    def begin(*options: str, prefix: tuple[str, ...] = ()) -> Bird:
        opened.append(Bird(home, *options, prefix=prefix))
        return opened[-1]

    yield begin
    for one in opened:
        one.close()
