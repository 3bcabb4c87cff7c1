"""Windows that are closed again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chat.window import Window, need_tmux


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Callable[..., Window]]:
    need_tmux()
    opened: list[Window] = []

    def open_window(**how: object) -> Window:
        opened.append(Window(tmp_path, **how))  # type: ignore[arg-type]  # passed on as they are
        return opened[-1]

    yield open_window
    for one in opened:
        one.close()
