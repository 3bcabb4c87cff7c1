"""What ends commands inside a bubblewrap sandbox, with counts that a test decides on."""

import os

import pytest

from hummingbird.sandboxes.runner import resource_watch
from hummingbird.sandboxes.runner.resource_watch import ResourceWatch


class Sandbox:
    """A watch, and how many files it counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files = 0
        self.ended: list[object] = []
        self.reasons = os.open(os.devnull, os.O_WRONLY)
        self.files_of_the_last_moment = 0
        monkeypatch.setattr(resource_watch, "parents_by_pid", dict)
        monkeypatch.setattr(resource_watch, "descendants", lambda *_: ["descendants"])
        monkeypatch.setattr(resource_watch, "signal_all", self._kill)
        monkeypatch.setattr(resource_watch, "count_files", lambda: {"/tmp": self.files, "/dev/shm": 0})
        self.watch = ResourceWatch(memory=2**30, inodes=4_000, locks=1_000)

    def _kill(self, processes: list[object], _: int) -> None:
        self.ended += processes
        self.files += self.files_of_the_last_moment
        self.files_of_the_last_moment = 0

    def look(self, worker: int, files: int | None = None) -> list[object]:
        self.files = self.files if files is None else files
        self.ended.clear()
        self.watch.enforce({worker: self.reasons})
        return list(self.ended)


def test_files_of_an_ended_command_are_not_the_next_ones_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(monkeypatch)
    assert sandbox.look(1, 3_000) == []
    sandbox.files_of_the_last_moment = 50  # between the count and the kill
    assert sandbox.look(1, 4_100) == ["descendants"]
    assert sandbox.look(2) == []


def test_a_command_that_adds_to_too_many_files_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(monkeypatch)
    assert sandbox.look(1, 4_100) == ["descendants"]
    assert sandbox.look(2) == []
    assert sandbox.look(2, 4_050) == []  # it takes some away
    assert sandbox.look(2, 4_051) == ["descendants"]


def test_a_first_look_that_comes_late_sees_what_the_command_made(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(monkeypatch)
    assert sandbox.look(1, 10) == []
    assert sandbox.look(2, 5_000) == ["descendants"]
