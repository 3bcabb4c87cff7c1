"""What a token is, as GitLab tells whoever holds it: whatever its scope, and never its value."""

import httpx2
import pytest

from hummingbird.lab.gitlab.server import GitLabLab


def myself(lab: GitLabLab, token: str) -> httpx2.Response:
    headers = {"PRIVATE-TOKEN": token} if token else {}
    return httpx2.get(f"{lab.url}/api/v4/personal_access_tokens/self", headers=headers)


@pytest.mark.parametrize(
    ("token", "scopes"),
    [
        (GitLabLab.read_token, ["read_api"]),
        (GitLabLab.write_token, ["api"]),
        (GitLabLab.narrow_token, ["read_user"]),
    ],
)
def test_a_token_says_whose_it_is_and_what_it_may_do(lab: GitLabLab, token: str, scopes: list[str]) -> None:
    answer = myself(lab, token)
    assert answer.status_code == 200
    assert answer.json()["scopes"] == scopes
    assert answer.json()["user_id"] == next(each.user_id for each in lab.world.tokens if each.value == token)
    assert token not in answer.text


@pytest.mark.parametrize("token", ["", "nonsense", GitLabLab.expired_token, GitLabLab.job_token])
def test_what_is_no_token_of_a_person_is_refused(lab: GitLabLab, token: str) -> None:
    assert myself(lab, token).status_code == 401


@pytest.mark.thorough
def test_every_answer_has_a_date(lab: GitLabLab) -> None:
    assert myself(lab, lab.read_token).headers["date"].endswith("GMT")
