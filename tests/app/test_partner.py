"""A conversation as its partner keeps it: for a turn at a time, by its journal, whoever wrote it."""

import asyncio
import json
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from hummingbird.core.errors import HummingbirdError, SessionTaken, UsageError
from hummingbird.core.journal import (
    Compacted,
    EndReason,
    JournalEntry,
    MessageSource,
    RunStarted,
    ToolDecided,
    TurnUndone,
    UserSaid,
    dump_entry,
)
from hummingbird.core.messages import make_image
from hummingbird.core.permissions import GrantScope
from hummingbird.storage.folder_sessions import FolderSession
from tests.app.chats import MODEL, OTHER, Home, Yes, calling, home
from tests.app.family import until
from tests.standins.vendors.script import Fault, Turn

LONG = "word " * 1_500


async def test_between_two_turns_the_session_is_anybody_s_and_what_they_write_is_seen(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="one"), Turn(text="two"), Turn(text="three")) as here:
        async with here.chat() as mine:
            await mine.say("first")
            await mine.wait_until_stored()
            session = mine.status().session_id
            async with here.chat(resume=session[:8]) as theirs:
                await theirs.say("second")
                with pytest.raises(UsageError, match="no session"):
                    await mine.resume("zzzz")
            assert mine.status().bill.attempts == 1
            await mine.say("third")
            assert here.heard(2) == ["first", "one", "second", "two", "third"]
            assert mine.status().bill.attempts == 3
        assert len([one for one in here.entries(session) if isinstance(one, RunStarted)]) == 3


async def test_while_a_turn_is_under_way_nobody_else_has_the_session(tmp_path: Path) -> None:
    tried = threading.Event()
    with home(tmp_path, Turn(text="one"), Fault("slow", until=tried, turn=Turn(text="two"))) as here:
        async with here.chat() as mine, here.chat() as theirs:
            await mine.say("first")
            session = mine.status().session_id
            run = asyncio.create_task(mine.say("second"))
            await until(lambda: len(here.lab.requests) == 2)
            with pytest.raises(SessionTaken):
                await theirs.resume(session)
            tried.set()
            assert (await run).text == "two"
            await mine.wait_until_stored()
            assert (await theirs.resume(session)).session_id == session


async def test_the_prompt_is_back_while_a_long_session_is_still_being_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next message waits for the store, nobody waits for it at the prompt, and what it holds then is whole."""
    gate, put = asyncio.Event(), FolderSession.write_files

    async def slowly(session: FolderSession, files: Mapping[str, bytes]) -> None:
        await gate.wait()
        await put(session, files)

    monkeypatch.setattr(FolderSession, "write_files", slowly)
    with home(tmp_path, Turn(text="one"), Turn(text="two")) as here:
        async with here.chat() as mine:
            session = mine.status().session_id
            await mine.say("first")  # returns though nothing can be kept yet
            following = asyncio.create_task(mine.say("second"))
            await asyncio.sleep(0.05)
            assert not following.done()
            assert not here.journal_of(session).with_name("transcript.md").exists()
            gate.set()
            await following
        text = here.journal_of(session).with_name("transcript.md").read_text()
    assert "second" in text
    assert "two" in text


async def test_the_prompt_that_a_chat_began_with_stays_while_memory_changes(tmp_path: Path) -> None:
    """The cache hangs on it. The next session has the new one."""
    memory = tmp_path / "state" / "memory" / "MEMORY.md"
    with home(tmp_path, *[Turn(text="ok")] * 3) as here:
        memory.parent.mkdir(parents=True)
        memory.write_text("The user likes tea.")
        async with here.chat() as mine:
            await mine.say("one")
            session = mine.status().session_id
        memory.write_text("The user likes coffee.")
        async with here.chat(resume=session) as mine:
            await mine.say("two")
            await mine.start_session()
            await mine.say("three")
        assert "likes tea" in here.system(0)
        assert here.system(1) == here.system(0)
        assert "likes coffee" in here.system(2)
        assert "likes tea" not in here.system(2)


async def test_broken_memory_is_one_sentence_and_the_chat_goes_on(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="ok")) as here:
        memory = tmp_path / "state" / "memory" / "MEMORY.md"
        memory.mkdir(parents=True)
        async with here.chat() as mine:
            assert (await mine.say("hello")).text == "ok"
            assert len([one for one in here.told if "MEMORY.md" in one]) == 1
            assert "MEMORY.md" in mine.memory_text()
        assert memory.is_dir()


@pytest.mark.thorough
async def test_another_model_answers_from_the_next_message_on(tmp_path: Path) -> None:
    with home(tmp_path, *[Turn(text="ok")] * 3) as here:
        async with here.chat() as mine:
            await mine.say("one")
            assert await mine.switch_model(OTHER) == OTHER
            assert mine.status().model == OTHER
            await mine.say("two")
            await mine.start_session()
            await mine.say("three")
            with pytest.raises(HummingbirdError):
                await mine.switch_model("nobody:knows-it")
            assert mine.status().model == OTHER
        assert [request.body["model"] for request in here.lab.requests] == [
            MODEL.split(":")[1],
            *[OTHER.split(":")[1]] * 2,
        ]


@pytest.mark.thorough
async def test_a_chosen_model_is_taken_also_right_after_a_fallback(tmp_path: Path) -> None:
    """What rests is the model that failed, not the one that a person asks for."""
    both = f"settings:\n  model: {MODEL}\nchat:\n  fallback_providers: [{OTHER}]\n"
    refused = Fault("status", status=400, type="invalid_request_error", message="no")
    with home(tmp_path, refused, Turn(text="fallback"), Turn(text="chosen")) as here:
        async with here.chat(configuration=here.configuration(both)) as mine:
            assert (await mine.say("one")).text == "fallback"
            await mine.switch_model("anthropic:claude-opus-4-5")
            await mine.say("two")
        assert here.lab.requests[-1].body["model"] == "claude-opus-4-5"


@pytest.mark.thorough
async def test_a_person_looks_at_a_compaction_applies_it_and_takes_it_back(tmp_path: Path) -> None:
    answers = [Turn(text=f"{n} {LONG}") for n in range(14)]
    notes, again = Turn(text="## State\nnotes"), Turn(text="## State\nother notes")
    with home(tmp_path, *answers, notes, Turn(text="on"), again, Turn(text="back")) as here:
        async with here.chat() as mine:
            assert "stays as it is" in (await mine.preview_compaction()).refusal
            for n in range(14):
                await mine.say(f"ask {n}")
            session = mine.status().session_id
            preview = await mine.preview_compaction("the cache")
            assert (preview.messages > 0, preview.refusal) == (True, "")
            assert "notes" in preview.summary
            assert preview.tokens_after < preview.tokens_before
            assert not [one for one in here.entries(session) if isinstance(one, Compacted)]
            await mine.say("more")
            with pytest.raises(UsageError, match="gone on since"):
                await mine.apply_compaction(preview)
            paid = mine.status().bill.attempts
            again_preview = await mine.preview_compaction()
            assert mine.status().bill.attempts == paid + 1
            await mine.apply_compaction(again_preview)
            with pytest.raises(UsageError):
                await mine.apply_compaction(again_preview)
            assert mine.status().context_tokens < preview.tokens_before
            assert await mine.undo_compaction()
            assert not await mine.undo_compaction()
            await mine.say("and now?")
            assert here.heard(-1)[:3] == ["ask 0", answers[0].text, "ask 1"]


@pytest.mark.thorough
async def test_a_message_is_taken_back_and_stays_in_the_journal(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="one"), Turn(text="two"), Turn(text="three")) as here:
        async with here.chat() as mine:
            with pytest.raises(UsageError, match="no message"):
                await mine.undo_message()
            await mine.say("first")
            await mine.say("second")
            assert await mine.undo_message() == "second"
            session = mine.status().session_id
        async with here.chat(resume=session) as later:
            await later.say("better")
            assert here.heard(2) == ["first", "one", "better"]
        said = [one.text for one in here.entries(session) if isinstance(one, UserSaid)]
        assert said == ["first", "second", "better"]
        assert [one.text for one in here.entries(session) if isinstance(one, TurnUndone)] == ["second"]


@pytest.mark.thorough
async def test_new_and_resume_go_from_one_session_to_another(tmp_path: Path) -> None:
    with home(tmp_path, *[Turn(text=f"answer {n}") for n in range(4)]) as here:
        async with here.chat() as mine:
            await mine.say("about apples")
            first = mine.status().session_id
            second = await mine.start_session()
            assert (second != first, mine.todos(), mine.status().bill.attempts) == (True, (), 0)
            await mine.say("about pears")
            found = await mine.resume(first)
            assert (found.session_id, found.entries) == (first, len(here.entries(first)))
            assert mine.status().bill.attempts == 1
            await mine.say("more apples")
            assert here.heard(2) == ["about apples", "answer 0", "more apples"]
            listed = [one.session_id for one in await mine.list_sessions(10)]
            assert set(listed) == {first, second}
            assert [hit.summary.session_id for hit in await mine.search_sessions("pears", 5)] == [second]
        async with here.chat(newest=True) as later:
            assert later.status().session_id == first
            await later.say("still apples")
        assert len(here.heard(3)) == 5


@pytest.mark.thorough
async def test_what_one_session_is_about_is_not_what_the_next_is_about(tmp_path: Path) -> None:
    """What was read in one project is not told in another."""
    with home(tmp_path, *[Turn(text="ok")] * 3) as here:
        async with here.chat() as mine:
            await mine.say("plain")
            plain = mine.status().session_id
        order = UserSaid(
            text='{"project": "acme/widgets", "mr_iid": 7, "workflow": "gone"}', source=MessageSource.ORDER
        )
        ordered, other = _told_otherwise(here, plain, "f" * 32, order), _told_otherwise(here, plain, "e" * 32)
        async with here.chat() as mine:
            await mine.resume(ordered)
            await mine.say("about the project")
            await mine.resume(other)
            await mine.say("about nothing")
        assert "acme/widgets" in here.system(1)
        assert "acme/widgets" not in here.system(2)


def _told_otherwise(here: Home, session: str, name: str, *more: JournalEntry) -> str:
    """The same session as a workflow that nobody has any more would have begun it: with another prompt."""
    first, *lines = here.journal_of(session).read_text().splitlines()
    opened = json.dumps(json.loads(first) | {"session_id": name, "system": "You look at failures."})
    here.journal_of(name).parent.mkdir()
    said = [dump_entry(entry).decode().strip() for entry in more]
    here.journal_of(name).write_text("\n".join([opened, *said, *lines]) + "\n")
    return name


@pytest.mark.thorough
async def test_stop_ends_the_run_sub_agents_and_processes(tmp_path: Path) -> None:
    yes = Yes()
    sleeping = calling("terminal", command="sleep 60", background=True)
    with home(tmp_path, sleeping, Turn(text="started"), Fault("stall", turn=Turn(text="never"))) as here:
        async with here.chat(asker=yes) as mine:
            await mine.say("start it")
            [process] = mine.status().background
            run = asyncio.create_task(mine.say("go on"))
            await until(lambda: len(here.lab.requests) == 3)
            assert await mine.stop()
            assert (await run).reason is EndReason.INTERRUPTED  # of a call that would never have ended
            assert mine.status().background == ()
            with pytest.raises(UsageError, match="is not a number"):
                await mine.stop("all of it")
            assert "had ended before" in await mine.stop(process.split()[0])
            with pytest.raises(UsageError):
                await mine.stop("1001")


@pytest.mark.thorough
async def test_an_interrupt_counts_also_before_the_message_was_sent(tmp_path: Path) -> None:
    """The prompt is back while a server of tools is still starting; the message was not said. How soon: benchmarks."""
    server = (
        f"settings:\n  model: {MODEL}\nchat:\n  mcp_servers:\n    slow:\n      command: sleep\n      args: ['30']\n"
        "      tools: ['*']\n"
    )
    with home(tmp_path) as here:
        async with here.chat(configuration=here.configuration(server), toolsets=("mcp", "todo")) as mine:
            run = asyncio.create_task(mine.say("hello"))
            await asyncio.sleep(0.1)
            mine.interrupt()
            with pytest.raises(UsageError, match="before it was sent"):
                await run
            assert not here.journal_of(mine.status().session_id).exists()


@pytest.mark.thorough
async def test_grants_are_shown_and_hold_for_that_call_in_that_session(tmp_path: Path) -> None:
    yes = Yes(GrantScope.SESSION)
    run, other = calling("terminal", command="echo one"), calling("terminal", command="echo two")
    turns = [run, run, other, Turn(text="done"), run, Turn(text="again")]
    with home(tmp_path, *turns) as here:
        async with here.chat(asker=yes) as mine:
            await mine.say("go")
            assert [question.text for question in yes.asked] == [
                'terminal {"command":"echo one"}',
                'terminal {"command":"echo two"}',
            ]
            assert len(mine.grants()) == 2
            assert mine.grants()[0] == 'terminal {"command":"echo one"} (session)'
            session = mine.status().session_id
        async with here.chat(asker=yes, resume=session) as later:
            await later.say("again")
        assert len(yes.asked) == 2
        async with here.chat(asker=yes) as another:
            assert not another.grants()
        decided = [one for one in here.entries(session) if isinstance(one, ToolDecided)]
        assert len(decided) == 4


PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


async def test_an_image_is_sent_and_still_there_in_another_process_and_when_it_is_sent_again(tmp_path: Path) -> None:
    def blocks(number: int) -> list[str]:
        content = here.lab.requests[number].body["messages"][0]["content"]
        return [one["type"] for one in content]

    with home(tmp_path, Turn(text="a bird"), Turn(text="yes"), Turn(text="a bird again")) as here:
        async with here.chat() as partner:
            named = partner.attach_image(make_image("shot.png", PNG))
            await partner.say(f"what is on {named}?")
            session = partner.status().session_id
        async with here.chat(resume=session) as partner:
            await partner.say("sure?")
            await partner.undo_message()
            await partner.say(await partner.undo_message())
    assert [blocks(number) for number in range(3)] == [["image", "text"]] * 3
    assert named == "[image 1: shot.png, 58 bytes]"


async def test_a_model_that_takes_no_images_and_a_session_that_is_full_of_them_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hummingbird.app.chat.SESSION_IMAGE_BYTES", 100)
    with home(tmp_path, Turn(text="a bird")) as here:
        async with here.chat() as partner:
            await partner.say(f"what is on {partner.attach_image(make_image('shot.png', PNG))}?")
            with pytest.raises(UsageError, match="more than 100 bytes"):
                partner.attach_image(make_image("shot.png", PNG))
            await partner.switch_model("digest")
            with pytest.raises(UsageError, match="digest takes no images, so nothing is sent"):
                partner.attach_image(make_image("shot.png", PNG))
