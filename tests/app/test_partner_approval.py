"""What a person is asked before a tool call of a chat, and what becomes of the answer."""

import asyncio
from pathlib import Path

import pytest

from hummingbird.core.errors import UsageError
from hummingbird.core.journal import EndReason
from hummingbird.core.permissions import GrantScope, PermissionAnswer, PermissionMode, PermissionQuestion
from tests.app.chats import Yes, calling, home
from tests.standins.vendors.script import Turn


async def test_an_edit_is_asked_about_as_the_diff_that_it_makes(tmp_path: Path) -> None:
    edit = calling("file_edit", path="notes.txt", new="two\n", old="one\n")
    person = Yes()
    with home(tmp_path, edit, Turn(text="done")) as here:
        (here.workspace / "notes.txt").write_text("zero\none\n")
        async with here.chat(asker=person) as partner:
            await partner.say("change it")
        (question,) = person.asked
        assert question.preview == "--- notes.txt\n+++ notes.txt\n@@ -1,3 +1,3 @@\n zero\n-one\n+two\n \n"
        assert list(question.arguments) == ["path", "new", "old"]
        assert (here.workspace / "notes.txt").read_text() == "zero\ntwo\n"


async def test_nobody_is_asked_about_an_edit_that_would_fail(tmp_path: Path) -> None:
    edit = calling("file_edit", path="notes.txt", new="two\n", old="nowhere\n")
    person = Yes()
    with home(tmp_path, edit, Turn(text="done")) as here:
        (here.workspace / "notes.txt").write_text("one\n")
        async with here.chat(asker=person) as partner:
            await partner.say("change it")
        assert person.asked == []
        assert "`old` is not in notes.txt" in str(here.lab.requests[1].body["messages"][-1])


class TakesOffers(Yes):
    """Takes whatever the question offers beyond the call, for as long as it was told."""

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question)
        return PermissionAnswer(self.scope, takes_offer=True)


async def test_accepting_edits_asks_no_more_about_edits_but_about_files_that_decide_what_runs(tmp_path: Path) -> None:
    turns = [calling("file_edit", path=name, new="x\n") for name in ("a.txt", "b.txt", ".gitlab-ci.yml", "sub/.envrc")]
    person = TakesOffers(GrantScope.SESSION)
    with home(tmp_path, *turns, calling("terminal", command="touch c"), Turn(text="done")) as here:
        async with here.chat(asker=person) as partner:
            await partner.say("write them")
            assert partner.status().mode is PermissionMode.ACCEPT_EDITS
        asked = [question.arguments.get("path") or question.arguments["command"] for question in person.asked]
        assert asked == ["a.txt", ".gitlab-ci.yml", "sub/.envrc", "touch c"]
        assert [question.offer.accept_edits for question in person.asked] == [True, False, False, False]


async def test_a_rule_taken_for_always_holds_in_this_folder_also_tomorrow(tmp_path: Path) -> None:
    person = TakesOffers(GrantScope.ALWAYS)
    first, second = calling("terminal", command="ls -a"), calling("terminal", command="ls")
    other = calling("terminal", command="uname")
    with home(tmp_path, first, Turn(text="done"), second, other, Turn(text="done")) as here:
        async with here.chat(asker=person) as partner:
            await partner.say("look")
        async with here.chat(asker=person) as partner:
            await partner.say("look again")
            assert [line for line, _ in partner.permissions().personal] == [
                "allow terminal(uname *)",
                "allow terminal(ls *)",
            ]
            await partner.remove_permission(2)
        assert [question.arguments["command"] for question in person.asked] == ["ls -a", "uname"]
        async with here.chat(asker=person) as partner:
            assert partner.permissions().personal == (("allow terminal(uname *)", "always"),)


async def test_a_mode_chosen_during_a_run_holds_at_once(tmp_path: Path) -> None:
    class Planner(Yes):
        async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
            partner.switch_mode(PermissionMode.PLAN)
            return await super().ask(question)

    person = Planner()
    turns = [calling("file_edit", path="a.txt", new="x\n"), calling("file_edit", path="b.txt", new="x\n")]
    with home(tmp_path, *turns, Turn(text="done")) as here:
        async with here.chat(asker=person) as partner:
            await partner.say("write them")
        assert len(person.asked) == 1
        assert list(here.workspace.iterdir()) == []
        assert "this is plan mode" in str(here.lab.requests[-1].body["messages"])


async def test_rules_of_the_command_line_allow_and_deny_without_anybody_to_ask(tmp_path: Path) -> None:
    turns = [
        calling("terminal", command="touch made"),
        calling("terminal", command="touch secrets"),
        calling("file_edit", path="a.txt", new="x\n"),
        calling("terminal", command="rm -rf /"),
    ]
    allow = ("Bash(touch *)", "terminal(rm *)")
    with home(tmp_path, *turns, Turn(text="done")) as here:
        async with here.chat(allow=allow, deny=("terminal(touch s*)",), accept_edits=True) as partner:
            await partner.say("go")
        assert sorted(path.name for path in here.workspace.iterdir()) == ["a.txt", "made"]
        with pytest.raises(UsageError, match="write it like"):
            async with here.chat(allow=("terminal(",)):
                pass


async def test_a_question_of_a_sub_agent_says_whose_it_is(tmp_path: Path) -> None:
    turns = [calling("delegate", tasks=["look at the wings"]), calling("terminal", command="make wings")]
    person = Yes(None)
    with home(
        tmp_path, *turns, Turn(text="could not"), calling("terminal", command="make all"), Turn(text="ok")
    ) as here:
        async with here.chat(asker=person) as partner:
            await partner.say("go")
        assert [question.asked_by for question in person.asked] == ["sub-agent 1001 (look at the wings)", ""]


async def test_what_a_command_had_printed_when_it_was_interrupted_reaches_the_model(tmp_path: Path) -> None:
    waiting = calling("terminal", command="echo half of it; touch begun; sleep 600")
    with home(tmp_path, waiting, Turn(text="I see")) as here:
        async with here.chat(asker=Yes()) as partner:
            running = asyncio.ensure_future(partner.say("go"))
            while not (here.workspace / "begun").exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.02)
            partner.interrupt()
            assert (await running).reason is EndReason.INTERRUPTED
            await partner.say("and?")
        assert "It had printed until then:" in str(here.lab.requests[1].body["messages"])
        assert "half of it" in str(here.lab.requests[1].body["messages"])
