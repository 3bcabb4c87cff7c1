"""Windows that are closed again, and a collector of garbage that is left as the tests want it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chat.window import Window, need_tmux


@pytest.fixture(autouse=True)
def settling(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often this process, which is not for one person alone, would have been settled."""
    times: list[str] = []
    for room in ("commands", "terminal"):
        monkeypatch.setattr(f"hummingbird.chat.{room}.freeze_garbage_collector", lambda room=room: times.append(room))
    return times


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
