"""What a person is asked before a tool call of a chat, and what becomes of the answer."""

from pathlib import Path

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
