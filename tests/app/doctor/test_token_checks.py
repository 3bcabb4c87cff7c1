"""Tokens that are invalid, narrow or too wide, roles and webhooks, each shown broken on a lab's GitLab."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hummingbird.app.doctor import CheckFinding, DoctorContext
from hummingbird.app.doctor.remote_checks import read_token_checks, write_token_checks
from hummingbird.lab.case import find_case
from hummingbird.lab.fault_injection import FaultResponse
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from tests.app.doctor.examining import FAIL, OK, SKIP, WARN, doctor_context, only, tried

WRITER, READER = "ORCHESTRATOR_GITLAB_TOKEN", "READING"
EVENTS = ("pipeline_events", "merge_requests_events", "note_events", "confidential_note_events")


def on(gitlab: GitLabLab, folder: Path, *, project: str = "", token_env: str = READER, **tokens: str) -> DoctorContext:
    """`tokens`: by the variable's name."""
    path = project or gitlab.world.project.path
    declared = f"{{token_env: {token_env}}}" if token_env else "{}"
    workflow = f'data_sources:\n  gitlab: {declared}\nprojects:\n  "{path}":\n'
    return doctor_context(folder, f"gitlab_url: {gitlab.url}", workflow, tokens)


def by_part(findings: list[CheckFinding], part: str) -> list[tuple[str, str]]:
    return [(one.standing, one.sentence) for one in findings if one.part == part]


@contextmanager
def role(gitlab: GitLabLab, level: int) -> Iterator[None]:
    """Of the user whose token writes; 0: no member any more."""
    owner = next(each.user_id for each in gitlab.world.tokens if each.value == gitlab.write_token)
    if level:
        gitlab.world.project.members[owner].access_level = level
    else:
        del gitlab.world.project.members[owner]
    yield


def test_a_token_that_writes_as_developer_is_well(tmp_path: Path, gitlab: GitLabLab) -> None:
    found = tried(write_token_checks, on(gitlab, tmp_path, **{WRITER: gitlab.write_token}))
    assert [one.standing for one in found] == [OK, OK]
    assert found[1].sentence == f"The user of {WRITER} is Developer."


def test_a_projects_own_token_is_the_one_that_is_tried(tmp_path: Path, gitlab: GitLabLab) -> None:
    path = gitlab.world.project.path
    own = f"{WRITER}_{path.upper().replace('/', '_').replace('-', '_')}"
    found = tried(write_token_checks, on(gitlab, tmp_path, **{WRITER: gitlab.write_token, own: gitlab.expired_token}))
    assert by_part(found, "token that writes") == [
        (FAIL, f"{own}: {gitlab.url[7:]} says that the token is invalid, expired or revoked: make a new one.")
    ]
    assert by_part(found, path) == [(SKIP, f"Not tried: {own} must be fixed first.")]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("token", "words"),
    [
        (GitLabLab.expired_token, "invalid, expired or revoked: make a new one"),
        ("nonsense", "invalid, expired or revoked: make a new one"),
        (GitLabLab.narrow_token, "cannot write: give it the scope api"),
        (GitLabLab.read_token, "cannot write: give it the scope api"),
        ("two words", "holds characters that no token has"),
    ],
)
def test_a_token_that_cannot_write_is_told(tmp_path: Path, gitlab: GitLabLab, token: str, words: str) -> None:
    found = tried(write_token_checks, on(gitlab, tmp_path, **{WRITER: token}))
    ((standing, sentence),) = by_part(found, "token that writes")
    assert standing == FAIL
    assert words in sentence
    assert token not in sentence


@pytest.mark.thorough
def test_a_token_that_ends_soon_is_told(tmp_path: Path, gitlab: GitLabLab) -> None:
    day = (datetime.now(UTC) + timedelta(days=3)).date().isoformat()
    for each in gitlab.world.tokens:
        each.expires_on = day
    found = tried(write_token_checks, on(gitlab, tmp_path, **{WRITER: gitlab.write_token}))
    assert by_part(found, "token that writes")[1] == (WARN, f"{WRITER} ends on {day}: renew it.")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("level", "standing", "words"),
    [
        (0, FAIL, "does not see it"),
        (10, FAIL, "is Guest, who cannot write internal notes: make it Developer"),
        (20, WARN, "is Reporter"),
        (40, WARN, "is Maintainer, more than it needs"),
    ],
)
def test_a_role_that_does_not_fit_is_told(
    tmp_path: Path, gitlab: GitLabLab, level: int, standing: str, words: str
) -> None:
    """The project is private, so that strangers do not see it at all."""
    gitlab.world.project.visibility = "private"
    with role(gitlab, level):
        found = tried(write_token_checks, on(gitlab, tmp_path, **{WRITER: gitlab.write_token}))
    assert by_part(found, gitlab.world.project.path)[0][0] == standing
    assert words in by_part(found, gitlab.world.project.path)[0][1]


@pytest.mark.thorough
def test_a_stranger_in_a_public_project_is_no_member(tmp_path: Path, gitlab: GitLabLab) -> None:
    gitlab.world.project.visibility = "public"
    with role(gitlab, 0):
        found = tried(write_token_checks, on(gitlab, tmp_path, **{WRITER: gitlab.write_token}))
    assert by_part(found, gitlab.world.project.path) == [
        (FAIL, f"The user of {WRITER} is not a member: add it as Developer.")
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("flags", "standing", "words"),
    [
        ((), WARN, "sends Pipeline events, Merge request events, Comments, Confidential comments: add one"),
        (EVENTS[:3], WARN, "does not send Confidential comments"),
        (EVENTS, OK, "sends every kind of event"),
    ],
)
def test_a_maintainers_token_sees_whether_the_webhook_sends_what_is_needed(
    tmp_path: Path, gitlab: GitLabLab, flags: tuple[str, ...], standing: str, words: str
) -> None:
    """Without confidential notes nobody can answer in an internal thread."""
    if flags:
        webhook_sender(gitlab.world).subscribe("https://hummingbird.example/webhooks/gitlab", *flags)
    with role(gitlab, 40):
        found = tried(write_token_checks, on(gitlab, tmp_path, **{WRITER: gitlab.write_token}))
    _role, hook = by_part(found, gitlab.world.project.path)
    assert hook[0] == standing
    assert words in hook[1]


@pytest.mark.thorough
def test_a_token_goes_nowhere_but_to_the_address_that_is_configured(tmp_path: Path, gitlab: GitLabLab) -> None:
    """A redirect is not followed."""
    with GitLabLab(find_case("compiler-error")) as other:
        place = {"Location": f"{other.url}/api/v4/personal_access_tokens/self"}
        gitlab.world.faults.plan("*/personal_access_tokens/self", FaultResponse(302, "", place), times=9)
        chosen = on(gitlab, tmp_path, **{WRITER: gitlab.write_token, READER: gitlab.read_token})
        found = [*tried(write_token_checks, chosen), *tried(read_token_checks, chosen)]
        assert other.requests == []
    assert by_part(found, "token that writes")[0][0] == FAIL
    assert "redirects to" in by_part(found, "token that writes")[0][1]
    assert by_part(found, "token that reads")[0][0] == FAIL


def test_a_token_that_only_reads_is_well(tmp_path: Path, gitlab: GitLabLab) -> None:
    found = tried(read_token_checks, on(gitlab, tmp_path, **{READER: gitlab.read_token}))
    assert [(one.standing, one.sentence) for one in found] == [
        (OK, f"{READER} is valid, and only reads."),
        (OK, f"Can be read with {READER}."),
    ]


@pytest.mark.parametrize(
    ("token", "standing", "words"),
    [
        (GitLabLab.expired_token, FAIL, "is invalid, expired or revoked"),
        (GitLabLab.narrow_token, FAIL, "cannot read: give it the scope read_api"),
        (GitLabLab.write_token, WARN, "can do more than read (api)"),
    ],
)
def test_a_token_that_reads_too_little_or_does_too_much_is_told(
    tmp_path: Path, gitlab: GitLabLab, token: str, standing: str, words: str
) -> None:
    found = tried(read_token_checks, on(gitlab, tmp_path, **{READER: token}))
    assert by_part(found, "token that reads")[0][0] == standing
    assert words in by_part(found, "token that reads")[0][1]


def test_one_token_for_both_tiers_is_a_failure(tmp_path: Path, gitlab: GitLabLab) -> None:
    """Tools would write."""
    chosen = on(gitlab, tmp_path, **{READER: gitlab.write_token, f"{WRITER}_OTHER": gitlab.write_token})
    assert by_part(tried(read_token_checks, chosen), "token that reads") == [
        (FAIL, f"{READER} holds the token that writes: make another one that only reads (read_api).")
    ]


def test_a_project_that_the_reading_token_does_not_see_is_told(tmp_path: Path, gitlab: GitLabLab) -> None:
    found = tried(read_token_checks, on(gitlab, tmp_path, project="gone/away", **{READER: gitlab.read_token}))
    assert by_part(found, "gone/away") == [
        (FAIL, f"{READER} does not see it: correct the path, or make its user a Reporter.")
    ]


def test_a_private_project_without_a_token_is_told_and_a_public_one_is_well(tmp_path: Path, gitlab: GitLabLab) -> None:
    gitlab.world.project.visibility = "private"
    found = only(tried(read_token_checks, on(gitlab, tmp_path, token_env="")))
    assert found.standing is FAIL
    assert "name one in gitlab.token_env" in found.sentence
    gitlab.world.project.visibility = "public"
    found = only(tried(read_token_checks, on(gitlab, tmp_path, token_env="")))
    assert (found.standing, found.sentence) == (OK, "Can be read without a token.")


@pytest.mark.thorough
def test_a_token_of_a_project_that_the_file_does_not_name_is_tried_too(tmp_path: Path, gitlab: GitLabLab) -> None:
    """* is every project."""
    environment = {f"{WRITER}_SOME_PROJECT": gitlab.expired_token}
    chosen = doctor_context(tmp_path, f"gitlab_url: {gitlab.url}", 'projects: {"*": }', environment)
    found = only(tried(write_token_checks, chosen))
    assert found.standing is FAIL
    assert found.sentence.startswith(f"{WRITER}_SOME_PROJECT: ")
