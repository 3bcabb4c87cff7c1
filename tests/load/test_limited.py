"""N3, facts 2.8: more notes at once than GitLab takes in a minute. Nobody loses a try by that, and nothing its note."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.service.burst import configuration
from benchmarks.service.crowd import CASE, ENDS, WORKFLOW, Crowd
from hummingbird.adapters.forge.forges import GitLabForges
from hummingbird.config.configuration import Configuration
from hummingbird.config.load import load
from hummingbird.domain.limits import BUSY_PAUSE_S
from hummingbird.domain.notes import Part
from hummingbird.domain.orders import Cause, WorkOrder, order_of, session_of
from hummingbird.domain.secrets import Secrets
from hummingbird.lab.case import find
from hummingbird.lab.gitlab.writing.notes import NOTES_A_MINUTE
from hummingbird.lab.scene import Scene, Worlds
from hummingbird.lab.scripted import ScriptedClock
from hummingbird.ports.forge import Forge, OrchestratorToken
from hummingbird.service.known import Known
from hummingbird.service.publication import Publication
from hummingbird.service.runs import Runs
from hummingbird.service.stages import Later
from tests.service.answered import Answered

MORE = 7


async def no_pause(_: float) -> None:
    return None


def orders(scene: Scene) -> list[WorkOrder]:
    def made(worlds: Worlds) -> list[WorkOrder]:
        world = worlds.gitlab
        found = []
        for mr in world.merge_requests[1:]:
            session = session_of(world.project.path, mr.iid, WORKFLOW, mr.sha or "")
            found.append(
                WorkOrder(
                    id=order_of(session, "event"),
                    session_id=session,
                    cause=Cause.PIPELINE,
                    workflow=WORKFLOW,
                    project=world.project.path,
                    mr_iid=mr.iid,
                    sha=mr.sha or "",
                    actor_id=mr.author_id,
                )
            )
        return found

    return scene.ask(made)


def runs(scene: Scene, forges: GitLabForges, folder: Path) -> Runs:
    (folder / "look.md").write_text("Find out why the pipeline failed.")
    file = folder / "hummingbird.yaml"
    file.write_text(configuration(scene.url("gitlab"), 4).replace("internal_notes: false", "internal_notes: true"))
    loaded, clock = load(file, None), ScriptedClock()

    def publication(forge: Forge, holding: Configuration) -> Publication:
        return Publication(forge, holding, clock)

    return Runs(lambda: loaded, lambda _: forges, publication, Answered(), Known(None, clock), clock.now)


@pytest.mark.thorough
async def test_what_gitlab_takes_no_note_of_now_waits_and_costs_no_try_n3(tmp_path: Path) -> None:
    with Scene(find(CASE)) as scene:
        crowd = Crowd(scene, NOTES_A_MINUTE + MORE)
        token = OrchestratorToken(scene.write_token)
        forges = GitLabForges(
            scene.url("gitlab"),
            lambda _: token,
            secrets=Secrets(),
            marker_prefix="hummingbird-session",
            pause=no_pause,
        )
        stage, wanted = runs(scene, forges, tmp_path), orders(scene)
        first = await asyncio.gather(*(stage.ordered(order, last_try=True) for order in wanted))
        waiting = [each.successor for each in first if isinstance(each, Later) and each.seconds == BUSY_PAUSE_S]
        assert len(waiting) == MORE
        scene.ask(lambda worlds: worlds.gitlab.advance(BUSY_PAUSE_S))
        again = await asyncio.gather(*(stage.ordered(order, last_try=True) for order in waiting))
        await forges.close()
        seen = crowd.seen
    assert again == [None] * MORE
    assert Counter((note.iid, note.part) for note in seen if note.part in ENDS) == Counter(
        (order.mr_iid, Part.RESULT.value) for order in wanted
    )
    assert len(seen) == 2 * len(wanted)
