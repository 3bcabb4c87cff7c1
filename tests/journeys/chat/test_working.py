"""An ordinary piece of work in a terminal: a question, commands, an edit, a list."""

from collections.abc import Callable

import pytest

from tests.journeys.chat.stage import Bird, Home, calling, saying
from tests.standins.vendors.script import Fault

Chat = Callable[..., Bird]


def test_the_first_message_is_answered_with_a_command_in_the_sandbox(home: Home, chat: Chat) -> None:
    home.lab.script.extend(
        calling("sandbox_exec", command="echo found-$((40 + 2)); ls /home"),
        saying("It is **42**, as the sandbox says."),
    )
    bird = chat("--verbose").ready()
    seen = bird.answered("What is it?", "It is 42, as the sandbox says.")
    assert "found-42" in seen
    assert "Ran in the sandbox echo found-" in seen
    assert "found-42" in home.asked()
    assert bird.all().count("Hummingbird. /help lists commands") == 1


@pytest.mark.thorough
def test_a_command_of_the_host_runs_after_a_yes_and_a_yes_for_the_session_is_not_asked_for_again(
    home: Home, chat: Chat
) -> None:
    home.lab.script.extend(
        *(calling("terminal", command="touch refused"), saying("Then not.")),
        *(calling("terminal", command="touch once"), saying("Made once.")),
        *(calling("terminal", command="echo x >> session"), saying("Made for the session.")),
        *(calling("terminal", command="echo x >> session"), saying("Made without a question.")),
        *(calling("terminal", command="echo y >> session"), saying("Another command, refused.")),
    )
    bird = chat().ready()
    for message, answer, end in (
        ("first", "n", "Then not."),
        ("second", "y", "Made once."),
        ("third", "s", "Made for the session."),
    ):
        bird.send(message)
        bird.wait_below(f"> {message}", "❯ 1 yes (y)")
        bird.send(answer)
        if answer == "n":
            bird.wait_for("Say what to do instead")
            bird.press("Enter")
        bird.wait_for(end)
    assert not (home.workspace / "refused").exists()
    assert (home.workspace / "once").exists()
    bird.answered("fourth", "Made without a question.")
    assert (home.workspace / "session").read_text() == "x\nx\n"
    bird.send("fifth")
    bird.wait_below("> fifth", "❯ 1 yes (y)")
    bird.send("use touch instead")
    bird.wait_for("Another command, refused.")
    assert "use touch instead" in home.asked()
    bird.send("/approve")
    bird.wait_below("> /approve", '{"command": "echo x >> session"} (session)')


@pytest.mark.thorough
def test_an_edit_shows_its_diff_and_is_taken_back_and_the_list_is_shown_as_it_changes(home: Home, chat: Chat) -> None:
    (home.workspace / "wing.py").write_text("beats = 60\nleft = True\n")
    home.configure({"permissions": [{"action": "allow", "tool": "file_edit"}]})
    home.lab.script.extend(
        calling("todo", action="create", texts=["look at the wing", "fix it"]),
        calling("file_read", path="wing.py"),
        Fault("slow", delay_s=0.2, turn=calling("todo", action="update", numbers=[1], state="in_progress")),
        calling("file_edit", path="wing.py", old="beats = 60", new="beats = 80"),
        Fault("slow", delay_s=0.2, turn=calling("todo", action="complete", numbers=[1])),
        saying("Eighty now."),
        saying("As it was."),
    )
    bird = chat().ready()
    seen = bird.answered("make it faster", "Eighty now.")
    assert "-beats = 60" in seen
    assert "+beats = 80" in seen
    assert (home.workspace / "wing.py").read_text() == "beats = 80\nleft = True\n"
    assert seen.count("1. look at the wing") == 1, "the list is a live block, and printed once at the end"
    assert "[x] 1. look at the wing" in seen
    bird.send("/undo edit")
    bird.wait_below("> /undo edit", "wing.py")
    assert (home.workspace / "wing.py").read_text() == "beats = 60\nleft = True\n"
    bird.send("/todo")
    bird.wait_below("> /todo", "[ ] 2. fix it")
    bird.answered("and now?", "As it was.")


@pytest.mark.thorough
def test_plan_mode_changes_nothing_although_the_configuration_allows_everything(home: Home, chat: Chat) -> None:
    home.configure({"permissions": [{"action": "allow", "tool": "*"}]})
    home.lab.script.extend(
        calling("file_edit", path="new.txt", new="text"),
        calling("terminal", command="touch made"),
        calling("sandbox_exec", command="echo looked"),
        saying("That is my plan."),
    )
    bird = chat("--plan").ready()
    seen = bird.answered("do it", "That is my plan.")
    assert "PLAN" in bird.last(1)
    assert seen.count(": not allowed by plan mode") == 2
    assert "✓ Ran in the sandbox echo looked" in seen
    assert list(home.workspace.iterdir()) == []
    assert "this is plan mode" in home.asked()
