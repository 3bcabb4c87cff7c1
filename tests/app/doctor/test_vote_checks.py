"""Whether thumbs on notes can be read, shown well and broken on a lab's GitLab."""

from pathlib import Path

import pytest

from hummingbird.app.doctor.remote_checks import vote_checks
from hummingbird.lab.fault_injection import FaultResponse
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from tests.app.doctor.examining import OK, SKIP, WARN, only, tried
from tests.app.doctor.test_token_checks import WRITER, on, role


def test_reactions_that_can_be_read_are_well(tmp_path: Path, gitlab: GitLabLab) -> None:
    found = only(tried(vote_checks, on(gitlab, tmp_path, **{WRITER: gitlab.write_token})))
    path = gitlab.world.project.path
    assert (found.part, found.standing, found.sentence) == ("votes", OK, f"Reactions on notes of {path} can be read.")


def test_a_webhook_that_tells_of_them_is_named(tmp_path: Path, gitlab: GitLabLab) -> None:
    webhook_sender(gitlab.world).subscribe("https://hummingbird.example/webhooks/gitlab", "emoji_events")
    with role(gitlab, 40):
        found = only(tried(vote_checks, on(gitlab, tmp_path, **{WRITER: gitlab.write_token})))
    assert found.standing == OK
    assert found.sentence.endswith("can be read, and its webhook tells of them at once.")


@pytest.mark.thorough
@pytest.mark.parametrize("status", [401, 403, 404])
def test_reactions_that_cannot_be_read_are_a_warning(tmp_path: Path, gitlab: GitLabLab, status: int) -> None:
    gitlab.world.faults.plan("*/award_emoji", FaultResponse(status, {"message": "no"}))
    found = only(tried(vote_checks, on(gitlab, tmp_path, **{WRITER: gitlab.write_token})))
    assert found.standing == WARN
    assert f"cannot be read with {WRITER}: fix it first." in found.sentence


@pytest.mark.thorough
def test_without_a_merge_request_nothing_is_tried(tmp_path: Path, gitlab: GitLabLab) -> None:
    gitlab.run_in_server(lambda world: world.merge_requests.clear())
    found = only(tried(vote_checks, on(gitlab, tmp_path, **{WRITER: gitlab.write_token})))
    assert (found.standing, "has no merge request yet" in found.sentence) == (SKIP, True)
