"""More notes at once than GitLab takes in a minute. Nobody loses a try by that, and nothing its note."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.service.burst import configuration
from benchmarks.service.crowd import CASE, ENDS, WORKFLOW, Crowd
from hummingbird.config.configuration import Configuration
from hummingbird.config.loader import load_config
from hummingbird.core.limits import BUSY_PAUSE_S
from hummingbird.core.masking import Secrets
from hummingbird.core.orders import OrderCause, WorkOrder, order_id_for, session_id_for
from hummingbird.gitlab.write.project_writer import GitLabProjectWriters
from hummingbird.gitlab.write.protocol import GitLabWriter, NoteKind, OrchestratorToken
from hummingbird.lab.case import find_case
from hummingbird.lab.gitlab.write.notes import NOTES_PER_MINUTE
from hummingbird.lab.scene import LabWorlds, Scene
from hummingbird.service.failure_history import KnownFailureTracker
from hummingbird.service.protocols import RetryLater
from hummingbird.service.publisher import ResultPublisher
from hummingbird.service.run_stage import RunStage
from tests.service.answered import Answered
from tests.standins.scripted_model import ScriptedClock

MORE = 7


async def no_pause(_: float) -> None:
    return None


def orders(scene: Scene) -> list[WorkOrder]:
    def made(worlds: LabWorlds) -> list[WorkOrder]:
        world = worlds.gitlab
        found = []
        for mr in world.merge_requests[1:]:
            session = session_id_for(world.project.path, mr.iid, WORKFLOW, mr.sha or "")
            found.append(
                WorkOrder(
                    id=order_id_for(session, "event"),
                    session_id=session,
                    cause=OrderCause.PIPELINE,
                    workflow=WORKFLOW,
                    project=world.project.path,
                    mr_iid=mr.iid,
                    sha=mr.sha or "",
                    actor_id=mr.author_id,
                )
            )
        return found

    return scene.run_in_server(made)


def runs(scene: Scene, forges: GitLabProjectWriters, folder: Path) -> RunStage:
    (folder / "look.md").write_text("Find out why the pipeline failed.")
    file = folder / "hummingbird.yaml"
    file.write_text(configuration(scene.url("gitlab"), 4).replace("internal_notes: false", "internal_notes: true"))
    loaded, clock = load_config(file, None), ScriptedClock()

    def publication(forge: GitLabWriter, holding: Configuration) -> ResultPublisher:
        return ResultPublisher(forge, holding, clock)

    return RunStage(
        lambda: loaded, lambda _: forges, publication, Answered(), KnownFailureTracker(None, clock), clock.now
    )


@pytest.mark.thorough
async def test_what_gitlab_takes_no_note_of_now_waits_and_costs_no_try(tmp_path: Path) -> None:
    with Scene(find_case(CASE)) as scene:
        crowd = Crowd(scene, NOTES_PER_MINUTE + MORE)
        token = OrchestratorToken(scene.write_token)
        forges = GitLabProjectWriters(
            scene.url("gitlab"),
            lambda _: token,
            secrets=Secrets(),
            marker_prefix="hummingbird-session",
            pause=no_pause,
        )
        stage, wanted = runs(scene, forges, tmp_path), orders(scene)
        first = await asyncio.gather(*(stage.process(order, last_try=True) for order in wanted))
        waiting = [each.successor for each in first if isinstance(each, RetryLater) and each.seconds == BUSY_PAUSE_S]
        assert len(waiting) == MORE
        scene.run_in_server(lambda worlds: worlds.gitlab.advance(BUSY_PAUSE_S))
        again = await asyncio.gather(*(stage.process(order, last_try=True) for order in waiting))
        await forges.close()
        seen = crowd.seen
    assert again == [None] * MORE
    assert Counter((note.iid, note.part) for note in seen if note.part in ENDS) == Counter(
        (order.mr_iid, NoteKind.RESULT.value) for order in wanted
    )
    assert len(seen) == 2 * len(wanted)
