"""`hummingbird sessions`: what ran is listed, shown, found by its words, played, exported and removed."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from hummingbird.core.journal import (
    EndReason,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ModelCalled,
    RunEnded,
    RunStarted,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    UserSaid,
    dump_entry,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import AssistantMessage, ToolCall
from hummingbird.storage.folder_sessions import FolderSessionStore
from tests.cli.typing_in import Typed, typed

DAY = 86_400.0
SECRET = "glpat-0123456789abcdefWXYZ"


def told(session_id: str, words: str, *, at: float, project: str = "acme/widgets") -> list[JournalEntry]:
    order = json.dumps({"workflow": "analyze-failures", "project": project, "mr_iid": 7, "sha": "abc"})
    call = ToolCall("c1", "sandbox_exec", '{"command": "make test"}')
    return [
        SessionOpened(session_id=session_id, system="Look.", format=JOURNAL_FORMAT, at=at),
        RunStarted(run_id="r1", model="digest", at=at),
        UserSaid(text=order, source=MessageSource.ORDER, at=at),
        ModelCalled(call_id="m1", model="digest", messages=1, at=at),
        ModelAnswered(call_id="m1", model="digest", message=AssistantMessage("I look.", calls=(call,)), at=at + 1),
        ToolStarted(call_id="c1", name="sandbox_exec", arguments=call.arguments, at=at + 1),
        ToolFinished(call_id="c1", name="sandbox_exec", text=words, at=at + 2),
        ModelCalled(call_id="m2", model="digest", messages=3, at=at + 2),
        ModelAnswered(call_id="m2", model="digest", message=AssistantMessage(f"It is {words}."), at=at + 3),
        RunEnded(run_id="r1", reason=EndReason.COMPLETED, text=f"It is {words}.", answered=True, at=at + 3),
    ]


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions = FolderSessionStore(folder / "state" / "sessions")
        (folder / "hummingbird.yaml").write_text("settings: {}\n")

    def keep(self, session_id: str, words: str, *, days: float = 0.0, project: str = "acme/widgets") -> Path:
        asyncio.run(self._keep(told(session_id, words, at=time.time() - days * DAY, project=project), session_id))
        journal = self.sessions.folder / session_id / "journal.jsonl"
        when = time.time() - days * DAY
        os.utime(journal, (when, when))
        return journal.parent

    async def _keep(self, entries: list[JournalEntry], session_id: str) -> None:
        session = await self.sessions.open(session_id)
        for entry in entries:
            session.journal.append(entry)
        await session.journal.commit()
        await session.release()

    def type(self, *arguments: str, answer: str | None = None, **more: str) -> Typed:
        environment = {
            "HUMMINGBIRD_HOME": str(self.folder / "state"),
            "CONFIG_PATH": str(self.folder / "hummingbird.yaml"),
            **more,
        }
        return typed("sessions", *arguments, environment=environment, answer=answer)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_sessions_are_listed_the_last_one_first(site: Site) -> None:
    site.keep("aaa111", "old trouble", days=3.1)
    site.keep("bbb222", "new trouble")
    done = site.type("list")
    assert done.code == 0
    first, second = done.out.splitlines()
    assert first.startswith("bbb222")
    assert second.startswith("aaa111")
    assert "3d  completed" in second
    assert "analyze-failures on acme/widgets!7" in second
    (one,) = json.loads(site.type("list", "--json", "-n", "1").out)
    assert (one["session_id"], one["answers"], one["reason"]) == ("bbb222", 2, "completed")


def test_no_session_is_said(site: Site) -> None:
    done = site.type("list")
    assert (done.code, "There is no session in" in done.out) == (0, True)
    assert site.type("search", "anything").code == 1


def test_what_a_tool_said_is_found_with_its_session(site: Site) -> None:
    site.keep("aaa111", "a NullPointerException in parser.c")
    site.keep("bbb222", "a timeout", project="acme/gadgets")
    done = site.type("search", "NullPointerException")
    assert done.code == 0
    assert "aaa111" in done.out
    assert "bbb222" not in done.out
    assert "**NullPointerException**" in done.out
    assert "aaa111" not in site.type("search", "NullPointerException", "--project", "acme/gadgets").out
    found = json.loads(site.type("search", "timeout", "--json").out)
    assert {hit["summary"]["session_id"] for hit in found} == {"bbb222"}


def test_what_changed_since_is_found_and_what_is_gone_is_not(site: Site) -> None:
    site.keep("aaa111", "first words")
    assert "aaa111" in site.type("search", "words").out
    with (site.sessions.folder / "aaa111" / "journal.jsonl").open("ab") as journal:
        journal.write(dump_entry(UserSaid(text="something quite different: marmalade", at=time.time())))
    assert "aaa111" in site.type("search", "marmalade").out
    assert site.type("rm", "aaa111", "--yes").code == 0
    assert "aaa111" not in site.type("search", "marmalade").out


def test_a_damaged_index_is_made_again_from_the_journals(site: Site) -> None:
    site.keep("aaa111", "marmalade")
    assert site.type("rebuild").out.startswith("The index has 1 session of")
    (index,) = (site.folder / "state").glob("sessions-*.sqlite")
    index.write_bytes(b"not a database at all" * 1000)
    done = site.type("search", "marmalade")
    assert "aaa111" in done.out
    assert done.code == 0


def test_secrets_are_not_indexed(site: Site) -> None:
    site.keep("aaa111", f"the token {SECRET} and of the environment hunter2hunter2")
    assert "aaa111" in site.type("search", "token", MY_PASSWORD="hunter2hunter2").out
    raw = b"".join(one.read_bytes() for one in (site.folder / "state").glob("sessions-*.sqlite*"))
    assert b"aaa111" in raw
    assert SECRET.encode() not in raw
    assert b"hunter2hunter2" not in raw


def test_a_session_is_shown_by_the_beginning_of_its_id(site: Site) -> None:
    site.keep("aaa111", "trouble")
    site.keep("aab222", "other trouble")
    done = site.type("show", "aaa")
    assert done.code == 0
    assert "ended    completed" in done.out
    assert "It is trouble." in done.out
    several, none = site.type("show", "aa"), site.type("show", "zz")
    assert (several.code, none.code) == (2, 2)
    assert "2 sessions begin with aa" in several.err
    assert "There is no session zz" in none.err
    lines = site.type("show", "aaa", "--json").out.splitlines()
    assert json.loads(lines[0])["kind"] == "session_opened"


def test_a_session_is_played_as_it_happened(site: Site) -> None:
    site.keep("aaa111", "trouble")
    out = site.type("replay", "aaa").out
    assert (
        out.index("▶ run r1") < out.index("→ sandbox_exec") < out.index("sandbox_exec: ok") < out.index("■ completed")
    )
    assert "     3.00s  ■ completed" in out


def test_an_exported_session_has_all_its_files_and_no_other_is_written_over(site: Site, tmp_path: Path) -> None:
    place = site.keep("aaa111", "trouble")
    (place / "sandbox.tar.gz").write_bytes(b"packed, and never opened")
    done = site.type("export", "aaa", str(tmp_path / "out"))
    assert done.code == 0
    assert (tmp_path / "out" / "journal.jsonl").read_bytes() == (place / "journal.jsonl").read_bytes()
    assert (tmp_path / "out" / "sandbox.tar.gz").read_bytes() == b"packed, and never opened"
    site.keep("bbb222", "trouble")
    again = site.type("export", "bbb", str(tmp_path / "out"))
    assert (again.code, "holds another session already" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("form", "first"),
    [("context", '{"format_version": 2'), ("journal", '{"kind":"session_opened"'), ("transcript", "# ")],
)
def test_one_file_of_a_session_goes_to_standard_output(site: Site, form: str, first: str) -> None:
    site.keep("aaa111", "trouble")
    assert site.type("export", "aaa", "-", "--format", form).out.startswith(first)


def test_a_file_that_is_there_is_not_written_over(site: Site, tmp_path: Path) -> None:
    site.keep("aaa111", "trouble")
    (tmp_path / "x").write_text("mine")
    done = site.type("export", "aaa", str(tmp_path / "x"), "--format", "context")
    assert (done.code, "name another file" in done.err) == (2, True)
    assert (tmp_path / "x").read_text() == "mine"


def test_what_is_older_is_removed_and_the_rest_stays(site: Site) -> None:
    """Retention."""
    old, new = site.keep("aaa111", "old", days=100), site.keep("bbb222", "new", days=1)
    seen = site.type("rm", "--older-than", "90d", "--dry-run")
    assert seen.out == "aaa111 would be removed\n"
    assert old.exists()
    asked = site.type("rm", "--older-than", "90d")
    assert (asked.code, "say --yes" in asked.err, old.exists()) == (2, True, True)
    refused = site.type("rm", "--older-than", "90d", answer="n\n")
    assert (refused.code, old.exists()) == (130, True)
    done = site.type("rm", "--older-than", "90d", "--yes")
    assert (done.code, done.out) == (0, "aaa111 is removed\n")
    assert (old.exists(), new.exists()) == (False, True)


def test_only_those_of_a_project_are_removed(site: Site) -> None:
    ours, theirs = site.keep("aaa111", "old", days=9), site.keep("bbb222", "old", days=9, project="acme/gadgets")
    done = site.type("rm", "--older-than", "1w", "--project", "acme/gadgets", "--yes")
    assert done.code == 0
    assert (ours.exists(), theirs.exists()) == (True, False)


def test_a_session_that_is_in_use_is_left_alone(site: Site) -> None:
    place = site.keep("aaa111", "old", days=9)
    session = asyncio.run(site.sessions.open("aaa111"))
    done = site.type("rm", "--older-than", "1d", "--yes")
    assert (done.code, "in use" in done.err, place.exists()) == (1, True, True)
    asyncio.run(session.release())
    assert site.type("rm", "--older-than", "1d", "--yes").code == 0


@pytest.mark.parametrize(
    "arguments",
    [("rm",), ("rm", "aaa", "--older-than", "1d"), ("rm", "--older-than", "soon"), ("rm", "--older-than", "")],
)
def test_what_to_remove_has_to_be_said_clearly(site: Site, arguments: tuple[str, ...]) -> None:
    done = site.type(*arguments)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_a_session_that_cannot_be_read_is_told_and_in_nobodys_way(site: Site) -> None:
    site.keep("aaa111", "marmalade")
    broken = site.sessions.folder / "bbb222"
    broken.mkdir()
    (broken / "journal.jsonl").write_bytes(b'{"kind":"user_said","text":"a"}\nnot json\n{"kind":"run_ended"}\n')
    done = site.type("search", "marmalade")
    assert "aaa111" in done.out
    assert "Session bbb222 is not in the index" in done.err
    assert site.type("rm", "bbb222", "--yes").code == 0
    assert not broken.exists()


def test_what_a_session_quotes_tells_a_terminal_nothing(site: Site) -> None:
    site.keep("aaa111", "marmalade \x1b]0;owned\x07 \x1b[2J")
    assert "\x1b" not in site.type("search", "marmalade").out


def test_what_is_no_session_is_in_nobodys_way(site: Site) -> None:
    """A copy that somebody made beside it."""
    place = site.keep("aaa111", "marmalade")
    copy = place.with_name("aaa111.bak")
    copy.mkdir()
    (copy / "journal.jsonl").write_bytes((place / "journal.jsonl").read_bytes())
    assert site.type("list").out.count("aaa111") == 1
    assert site.type("search", "marmalade").code == 0
