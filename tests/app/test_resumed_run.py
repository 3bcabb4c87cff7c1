"""Going on with a session that was saved in a folder, or is in the store."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hummingbird.app.run_request import RunRequest
from hummingbird.core.errors import SessionTaken, UsageError
from hummingbird.core.journal import RunStarted, SessionOpened, UserSaid
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.lab.scene import Scene
from hummingbird.storage.journals import FileJournal
from tests.app.conducting import MODEL
from tests.app.running_on import FILES, ORCHESTRATOR, WORKFLOW, Site, site
from tests.standins.vendors.script import Script, Turn
from tests.standins.vendors.server import VendorLab

WRITER = {ORCHESTRATOR: Scene.write_token}


def entries(folder: Path) -> list[object]:
    journal = FileJournal(folder / "journal.jsonl")
    journal.close()
    return [*journal.entries()]


async def test_a_saved_session_goes_on_with_another_model(tmp_path: Path) -> None:
    """The same session and the words as they are; without a folder to save it in, the first one is only read."""
    script, folder = Script([Turn(text="It is the test.")]), tmp_path / "mine"
    with site(tmp_path) as here, VendorLab(script) as lab:
        first = await here.only(here.direct(save=str(folder)))
        given = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}
        before = (folder / "journal.jsonl").read_bytes()
        wish = here.direct(event=None, resume=str(folder), message="Is it the test?", model=MODEL)
        script.extend(Turn(text="It is the test."))
        assert (await here.only(wish, None, **given)).saved is None
        assert (folder / "journal.jsonl").read_bytes() == before
        done = await here.only(replace(wish, save=str(folder)), None, **given)
        assert here.written == []
        script.assert_consumed()
    assert done.text == "It is the test."
    kept = entries(folder)
    (opened,) = [one for one in kept if isinstance(one, SessionOpened)]
    assert opened.session_id == first.order.session_id == done.order.session_id
    assert [one.model for one in kept if isinstance(one, RunStarted)] == ["digest", MODEL]
    assert [one.text for one in kept if isinstance(one, UserSaid)][1] == "Is it the test?"
    assert "It is the test." in (folder / "transcript.md").read_text()


async def test_a_session_goes_on_in_another_folder(tmp_path: Path) -> None:
    """The chain of the reference documents, with an event file; the first folder stays as it was."""
    one, two = tmp_path / "one", tmp_path / "two"
    with site(tmp_path) as here:
        await here.only(here.direct(save=str(one)))
        before = (one / "journal.jsonl").read_bytes()
        wish = RunRequest(event_file="-", resume=str(one), message="And?", save=str(two))
        done = await here.only(wish, here.webhook())
        await here.only(RunRequest(event_file="-", resume=str(one), message="And?", save=str(one)), here.webhook())
        ours, theirs = ((folder / "journal.jsonl").read_bytes() for folder in (one, two))
        with pytest.raises(UsageError, match=f"continued differently in {two}"):
            await here.run(RunRequest(event_file="-", resume=str(one), message="And?", save=str(two)), here.webhook())
        assert ((one / "journal.jsonl").read_bytes(), (two / "journal.jsonl").read_bytes()) == (ours, theirs)
    assert done.order.workflow == WORKFLOW
    assert sorted(file.name for file in two.iterdir()) == [*FILES]
    assert (two / "journal.jsonl").read_bytes().startswith(before)
    assert len((two / "journal.jsonl").read_bytes()) > len(before)


async def test_a_folder_without_a_session_is_one_sentence(tmp_path: Path) -> None:
    with site(tmp_path) as here, pytest.raises(UsageError, match=r"no journal\.jsonl"):
        await here.run(here.direct(resume=str(tmp_path), message="Hello?"))


@pytest.mark.thorough
@pytest.mark.parametrize("more", [{"project": "some/other"}, {"event": '{"iid": 999}'}])
async def test_a_session_about_something_else_is_refused(tmp_path: Path, more: dict[str, str]) -> None:
    """What was read in one project is not told in another."""
    folder = tmp_path / "mine"
    with site(tmp_path) as here:
        await here.only(here.direct(save=str(folder)))
        with pytest.raises(UsageError, match=f"is about {here.project}!{here.iid}"):
            await here.run(here.direct(resume=str(folder), message="And?", **more))


@pytest.mark.thorough
async def test_a_session_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    with site(tmp_path) as here:
        await here.only(here.direct(save=str(folder)))
        journal = FileJournal(folder / "journal.jsonl")
        try:
            with pytest.raises(SessionTaken):
                await here.run(here.direct(resume=str(folder), message="And?", save=str(folder)))
        finally:
            journal.close()


@pytest.mark.thorough
async def test_an_answer_to_a_saved_session_is_posted_in_its_thread(tmp_path: Path) -> None:
    """With --execute, in the thread of the session, and the store goes on with it."""
    folder = tmp_path / "mine"
    variables = {ORCHESTRATOR: Scene.write_token}
    with site(tmp_path) as here:
        first = await here.only(here.direct(execute=True, save=str(folder)), None, **variables)
        wish = here.direct(execute=True, resume=str(folder), message="And why?", save=str(folder))
        done = await here.only(wish, None, **variables)
        threads = here.scene.run_in_server(
            lambda worlds: [len(one.notes) for one in worlds.gitlab.merge_request.discussions]
        )
        assert len(here.notes) == 3
        assert max(threads) == 3
    assert done.order.session_id == first.order.session_id
    kept = tmp_path / "state" / "sessions" / first.order.session_id
    assert (kept / "journal.jsonl").read_bytes() == (folder / "journal.jsonl").read_bytes()
    assert [one.text for one in entries(folder) if isinstance(one, UserSaid)][1] == "And why?"


@pytest.mark.thorough
async def test_a_session_that_was_never_posted_gets_a_thread_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    with site(tmp_path) as here:
        await here.only(here.direct(save=str(folder)))
        wish = here.direct(execute=True, event=None, resume=str(folder), message="And why?")
        done = await here.only(wish, None, **{ORCHESTRATOR: Scene.write_token})
        (note,) = here.notes
    assert done.posted == here.url
    assert done.order.session_id in note


async def test_a_session_that_no_order_began_is_never_posted(tmp_path: Path) -> None:
    """Nobody can say whose merge request its words belong to."""
    folder = tmp_path / "mine"
    journal = FileJournal(folder / "journal.jsonl")
    journal.append(SessionOpened(session_id="abc", system="Be brief.", format=JOURNAL_FORMAT))
    journal.close()
    with site(tmp_path) as here:
        wish = here.direct(execute=True, resume=str(folder), message="And?")
        with pytest.raises(UsageError, match="leave --execute out"):
            await here.run(wish, None, **{ORCHESTRATOR: Scene.write_token})
        assert here.written == []


async def executed(here: Site) -> str:
    """The id of a session that the store has."""
    return (await here.only(here.direct(execute=True), None, **WRITER)).order.session_id


@pytest.mark.thorough
async def test_a_session_of_the_store_is_asked_in_a_copy(tmp_path: Path) -> None:
    """What is dry leaves no trace in the store, nor in GitLab."""
    with site(tmp_path) as here:
        session = await executed(here)
        kept, posted = contents(tmp_path / "state" / "sessions" / session), here.written
        done = await here.only(here.direct(event=None, resume=session, message="And why?"))
        saved = await here.only(here.direct(resume=session, message="And why?", save=str(tmp_path / "mine")))
        assert here.written == posted
    assert contents(tmp_path / "state" / "sessions" / session) == kept
    assert done.order.session_id == session
    assert (done.saved, saved.saved) == (None, tmp_path / "mine")
    assert [one.text for one in entries(tmp_path / "mine") if isinstance(one, UserSaid)][1:] == ["And why?"]
    assert (tmp_path / "mine" / "journal.jsonl").read_bytes().startswith(kept["journal.jsonl"])


@pytest.mark.thorough
async def test_a_session_of_the_store_goes_on_there_with_execute(tmp_path: Path) -> None:
    """In its thread; a folder that is named has all of it too."""
    store, folder = tmp_path / "state" / "sessions", tmp_path / "mine"
    with site(tmp_path) as here:
        session = await executed(here)
        wish = here.direct(execute=True, event=None, resume=session, message="And why?", save=str(folder))
        done = await here.only(wish, None, **WRITER)
        threads = here.scene.run_in_server(
            lambda worlds: [len(one.notes) for one in worlds.gitlab.merge_request.discussions]
        )
        assert (len(here.notes), max(threads)) == (3, 3)
    assert (done.order.session_id, done.posted) == (session, here.url)
    assert [one.text for one in entries(store / session) if isinstance(one, UserSaid)][1:] == ["And why?"]
    assert (store / session / "journal.jsonl").read_bytes() == (folder / "journal.jsonl").read_bytes()


@pytest.mark.thorough
async def test_a_session_of_the_store_that_is_about_something_else_is_refused(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        session = await executed(here)
        with pytest.raises(UsageError, match=f"session {session} of .* is about {here.project}!{here.iid}"):
            await here.run(here.direct(resume=session, message="And?", project="some/other"))


async def test_an_id_that_is_nowhere_is_one_sentence(tmp_path: Path) -> None:
    with site(tmp_path) as here, pytest.raises(UsageError) as refused:
        await here.run(here.direct(resume="nobody", message="Hello?"))
    assert "nobody is not a folder" in str(refused.value)
    assert f"There is no session nobody in {tmp_path / 'state' / 'sessions'}" in str(refused.value)
    assert not (tmp_path / "state").exists(), "looking makes nothing"


@pytest.mark.thorough
@pytest.mark.parametrize("execute", [False, True])
async def test_a_session_of_an_older_format_goes_on(tmp_path: Path, execute: bool) -> None:
    """A folder with nothing but a context.json; twice, as what it was brought up to date to is the same."""
    folder = tmp_path / "mine"
    folder.mkdir()
    with site(tmp_path) as here:
        order = json.dumps({"workflow": WORKFLOW, "project": here.project, "iid": here.iid})
        history = [{"role": "user", "content": order}, {"role": "assistant", "content": "The disk was full."}]
        (folder / "context.json").write_text(json.dumps(history))
        for message in ("Which disk?", "And now?"):
            wish = here.direct(event=None, resume=str(folder), message=message, save=str(folder), execute=execute)
            assert (await here.only(wish, None, **WRITER)).text
        assert bool(here.notes) is execute
    kept = entries(folder)
    assert [one.text for one in kept if isinstance(one, UserSaid)] == ["Which disk?", "And now?"]
    assert "The disk was full." in (folder / "transcript.md").read_text()
    assert len([one for one in kept if isinstance(one, SessionOpened)]) == 1


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}
