"""Status line, completion, history, log lines: the small parts of a terminal."""

import asyncio
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from hummingbird.chat import input_area
from hummingbird.chat.attachments import PasteStore
from hummingbird.chat.headless import open_standard_input
from hummingbird.chat.input_area import ChatCompleter, ChatHistory, can_complete, complete_path
from hummingbird.chat.narrator import Narrator
from hummingbird.chat.partner import ChatStatus
from hummingbird.chat.questions import QuestionQueue
from hummingbird.chat.screen import (
    COMPLETIONS,
    HISTORY_ENTRIES,
    HISTORY_ENTRY_CHARS,
    MENTION_BYTES,
    MESSAGE_BYTES,
    PASTE_CHARS,
    fit_line,
    last_rows,
    wrap_line,
    wrap_words,
)
from hummingbird.chat.status_text import build_status_line
from hummingbird.chat.terminal import has_terminal, log_to_screen
from hummingbird.chat.terminal_io import PasteParser, rows_pushed_down
from hummingbird.core.errors import InputUnreadable
from hummingbird.core.permissions import PermissionMode
from hummingbird.core.usage import Bill, TokenUsage
from tests.chat.noted_screen import NotedScreen
from tests.chat.scripted_partner import BILL, ScriptedPartner

STANDING = ChatStatus("abcdef123456", "m" * 20, 50, 100, BILL, mode=PermissionMode.PLAN, background=("1 make watch",))


@pytest.fixture(autouse=True)
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_area, "COMPLETION_S", 3600.0)


def test_bounds_fit_each_other() -> None:
    assert PASTE_CHARS < MESSAGE_BYTES
    assert MENTION_BYTES <= MESSAGE_BYTES


def test_the_status_line_leaves_out_what_matters_least_and_never_wraps() -> None:
    whole = build_status_line(STANDING, 200, doing="thinking 3s", queued=2)
    assert whole == (
        "thinking 3s · PLAN · 2 queued · mmmmmmmmmmmmmmmmmmmm · context 50% · $0.0123 · cache 80% · "
        "1 in the background · abcdef12"
    )
    for columns in range(10, 120):
        line = build_status_line(STANDING, columns, doing="thinking 3s", queued=2)
        assert len(line) <= columns
        assert line.startswith("thinking ")
    assert "PLAN" in build_status_line(STANDING, 30, doing="thinking 3s")


def test_a_cost_with_holes_is_marked_and_a_model_without_a_ceiling_has_no_share() -> None:
    bill = Bill(2, 2, TokenUsage(), Decimal("0.5"), 1)
    line = build_status_line(replace(STANDING, bill=bill, context_limit=0, model="a\x1b[2J"), 200)
    assert "$0.5000+?" in line
    assert "context 0%" in line
    assert "\x1b" not in line


def test_a_terminal_is_one_that_can_move_its_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "r+b", buffering=0) as side:
        monkeypatch.setattr(sys, "stdin", side)
        monkeypatch.setattr(sys, "stdout", side)
        assert has_terminal({"TERM": "xterm"})
        assert not has_terminal({"TERM": "dumb"})
        monkeypatch.setattr(sys, "stdin", None)
        assert not has_terminal({"TERM": "xterm"})
        with pytest.raises(InputUnreadable, match="There is no standard input"):
            open_standard_input()
    os.close(ours)


def completed(start: Path, text: str) -> list[str]:
    return [one.text for one in ChatCompleter(start).get_completions(Document(text), CompleteEvent())]


def test_commands_are_completed_at_the_beginning_alone(tmp_path: Path) -> None:
    assert completed(tmp_path, "/re") == ["/resume ", "/rewind", "/rename ", "/retry", "/review "]
    assert completed(tmp_path, "say /re") == []
    assert not can_complete(Document("mail me@exa"))


async def test_models_sessions_own_commands_and_words_are_completed_after_a_command(tmp_path: Path) -> None:
    nobody = NotedScreen()
    partner = ScriptedPartner(Narrator(nobody), QuestionQueue(nobody), QuestionQueue(nobody))
    completer = ChatCompleter(tmp_path, lambda: partner)

    async def offered(text: str) -> list[str]:
        assert can_complete(Document(text))
        return [one.text async for one in completer.get_completions_async(Document(text), CompleteEvent())]

    listed = await partner.list_sessions(9)
    assert await offered("/model ow") == ["owl"]
    assert await offered("/resume ") == [one.session_id[:12] for one in listed]
    assert await offered(f"/resume {listed[0].title[:3]}") == [listed[0].session_id[:12]]
    assert await offered("/cri") == ["/critique "]
    assert await offered("/undo f") == ["files"]
    (tmp_path / "talk.md").touch()
    assert await offered("/export ta") == ["talk.md"]
    assert not can_complete(Document("/rename ta"))


def test_paths_below_the_start_are_completed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("src/deep/wings.py", "src/wing.txt", ".git/wing", "node_modules/wing.js", "win dow", "wi\x1b[2J"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert complete_path(tmp_path, "wing") == ["src/wing.txt", "src/deep/wings.py"]
    assert completed(tmp_path, "look @sr") == ["src/"]
    assert complete_path(tmp_path, "src/wi") == ["src/wing.txt", "src/deep/wings.py"]
    assert complete_path(tmp_path, "") == ["src/"]
    assert complete_path(tmp_path, "../") == complete_path(tmp_path, "/etc/") == []


def test_of_a_huge_tree_a_bounded_part_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2 * COMPLETIONS):
        (tmp_path / f"f{number}").mkdir()
        (tmp_path / f"f{number}" / "wing").touch()
    assert len(complete_path(tmp_path, "wing")) == COMPLETIONS
    assert complete_path(tmp_path, "nothing-like-it") == []
    monkeypatch.setattr(input_area, "COMPLETION_ENTRIES", 2 * COMPLETIONS + 3)
    assert len(complete_path(tmp_path, "wing")) == 3
    monkeypatch.setattr(input_area, "COMPLETION_S", -1.0)
    assert complete_path(tmp_path, "wing") == []


def masked(text: str) -> str:
    return text.replace("hunter2", "[masked]")


async def kept(history: ChatHistory) -> list[str]:
    return [text async for text in history.load()]


async def test_history_survives_without_credentials_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history"
    history = ChatHistory(path, masked)
    history.append_string("first\nwith two lines")
    history.append_string("my password is hunter2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "hunter2" not in path.read_text()
    assert history.get_strings()[-1] == "my password is hunter2"
    assert await kept(ChatHistory(path, masked)) == ["my password is [masked]", "first\nwith two lines"]


async def test_what_was_pasted_is_kept_behind_a_placeholder_of_the_new_conversation(tmp_path: Path) -> None:
    path, pastes, later = tmp_path / "history", PasteStore(), PasteStore()
    first, second = "x" * 5_000, "@key hunter2 " * 500
    typed = f"look at {pastes.keep(first)}{pastes.keep(second)} and say"
    ChatHistory(path, masked, pastes).append_string(typed)
    later.keep("y" * 5_000)  # of equal number and length
    assert later.split_pastes(typed) == [(0, typed)]
    (found,) = await kept(ChatHistory(path, masked, later))
    assert [part for number, part in later.split_pastes(found) if number] == [
        first,
        second.replace("hunter2", "[masked]"),
    ]
    assert found.startswith("look at [pasted 2-")
    assert found.endswith(" characters] and say")


async def test_what_is_too_long_for_the_history_is_kept_up_to_its_bound_and_that_is_said(tmp_path: Path) -> None:
    pastes = PasteStore()
    history = ChatHistory(tmp_path / "history", str, pastes)
    history.append_string(f"look: {pastes.keep('x' * 3 * HISTORY_ENTRY_CHARS)}!")
    assert f"the last {2 * HISTORY_ENTRY_CHARS + 7:,} are not kept" in history.cut
    later = PasteStore()
    (found,) = await kept(ChatHistory(tmp_path / "history", str, later))
    assert "".join(part for _, part in later.split_pastes(found)) == "look: " + "x" * (HISTORY_ENTRY_CHARS - 6)
    history.append_string("short")
    assert history.cut == ""


async def test_a_history_that_is_broken_or_too_long_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "history"
    lines = [f'"entry {number}"' for number in range(3 * HISTORY_ENTRIES)]
    path.write_bytes("\n".join([*lines, "{", "12", '["a", 1]', '"last"']).encode() + b"\n\xff\n")
    found = await kept(ChatHistory(path, str))
    assert found[0] == "last"
    assert len(found) == HISTORY_ENTRIES - 4
    assert len(path.read_bytes().splitlines()) == HISTORY_ENTRIES


async def test_a_history_that_cannot_be_used_costs_nothing_but_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = ChatHistory(tmp_path / "file" / "history", str)
    history.append_string("still there")
    assert history.get_strings() == ["still there"]
    assert "cannot be written" in history.trouble


@pytest.mark.parametrize("size", [1, 3, 5, 6, 7, 1_000])
def test_a_paste_is_the_same_however_it_is_cut(size: int) -> None:
    text = "ab\x1b[200~one\x1b[31m\x1b[20\nend\x1b[201~cd\x1b[200~two\x1b[201~"
    pressed: list[KeyPress] = []
    parser = PasteParser(pressed.append)
    for at in range(0, len(text), size):
        parser.feed(text[at : at + size])
    assert [(press.key, press.data) for press in pressed] == [
        ("a", "a"),
        ("b", "b"),
        (Keys.BracketedPaste, "one\x1b[31m\x1b[20\nend"),
        ("c", "c"),
        ("d", "d"),
        (Keys.BracketedPaste, "two"),
    ]


def test_lines_are_wrapped_by_what_they_take_on_the_screen() -> None:
    assert wrap_line("漢字漢字", 5) == ["漢字", "漢字"]
    assert fit_line("漢字漢字", 5) == "漢字…"
    assert last_rows("x" * 95 + "\nend", 10, 2) == ["xxxxx", "end"]
    assert rows_pushed_down([100, 30, 0], 70, Size(rows=20, columns=60)) == 2


async def test_a_warning_of_any_thread_becomes_a_line(caplog: pytest.LogCaptureFixture) -> None:
    screen = NotedScreen()
    warn: Callable[[str], None] = logging.getLogger("hummingbird.somewhere").warning
    with log_to_screen(screen):
        thread = threading.Thread(target=warn, args=("the disk is full",))
        thread.start()
        thread.join()
        await asyncio.sleep(0)
    assert screen.lines == ["! the disk is full"]


def test_long_lines_break_between_words_below_their_text() -> None:
    assert wrap_words("· the prompt or the tools have changed", 20) == ["· the prompt or the", "  tools have changed"]
    assert wrap_words("/new  start a new session, this one is kept", 22) == [
        *("/new  start a new", "      session, this", "      one is kept")
    ]
    assert wrap_words("> " + "x" * 25 + " y", 10) == ["> xxxxxxxx", "  xxxxxxxx", "  xxxxxxxx", "  x y"]
    assert wrap_words("語" * 8 + " 語 fits", 10) == ["語" * 5, "語" * 3 + " 語", "fits"]
    assert wrap_words("short", 20) == ["short"]
    assert wrap_words("", 20) == [""]
