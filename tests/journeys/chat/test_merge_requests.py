"""A session goes from a merge request to a terminal and back: one history, whoever wrote it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.journal import RunStarted, UserSaid
from tests.chat.window import need_tmux
from tests.journeys.chat.stage import Bird, Home, calling, saying
from tests.journeys.service.stage import MODEL, Stage, staged


class AtTheService(Home):
    """A terminal on the machine of a service: its home, its configuration, its model."""

    stage: Stage

    @property
    def config(self) -> Path:
        return self.stage.file

    @property
    def given(self) -> dict[str, str]:
        return self.stage.environment


def said(stage: Stage, at: int) -> str:
    assert stage.lab is not None
    body: Any = stage.lab.requests[at].body
    return json.dumps(body, ensure_ascii=False)


def spoken(stage: Stage, session: str, message: str, answer: str) -> str:
    """What stands in the terminal after it, with the list of tools."""
    assert stage.lab is not None
    home = AtTheService(stage.folder, stage.lab)
    home.stage = stage
    bird = Bird(home, "--resume", session, "--model", MODEL)
    try:
        bird.ready()
        bird.answered(message, answer)
        bird.send("/tools")
        bird.wait_below("> /tools", "gitlab")
        return bird.all()
    finally:
        bird.close()


@pytest.mark.thorough
@pytest.mark.timeout(300)
async def test_a_session_of_a_merge_request_is_continued_in_a_terminal_and_then_by_a_reply(tmp_path: Path) -> None:
    need_tmux()
    async with staged("failing-test", tmp_path, turns=[saying("The parser is too strict.")]) as stage:
        request = stage.world.merge_request
        look = calling("gitlab_get_mr_details", project=stage.world.project.path, mr_iid=request.iid)
        stage.script.extend(look, saying("In the terminal: line 61."), saying("As I said in the terminal."))
        await stage.begin_case()
        _, result = await stage.notes(2)
        seen = await asyncio.to_thread(spoken, stage, result.session, "which line?", "In the terminal: line 61.")
        await stage.write("hsato", "Once more, please.", thread=result.thread)
        *_, answer = await stage.notes(3)
        entries = stage.entries(result.session)
        in_terminal, by_reply = said(stage, 2), said(stage, 3)
    assert "✓ Called gitlab_get_mr_details" in seen
    assert "The parser is too strict." in in_terminal
    assert "As I said in the terminal." in answer.body
    assert answer.session == result.session
    for words in ("The parser is too strict.", "which line?", "In the terminal: line 61.", "Once more, please."):
        assert words in by_reply
    assert sum(isinstance(entry, RunStarted) for entry in entries) == 3
    assert [entry.text for entry in entries if isinstance(entry, UserSaid)][1:] == ["which line?", "Once more, please."]
