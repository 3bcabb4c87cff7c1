"""Files, commits, branches, comparisons and archives."""

import base64
import hashlib
import io
import tarfile
import zipfile

import httpx2
import pytest

from hummingbird.lab.gitlab.world import GitLabWorld
from tests.lab.gitlab.asking import BASE, HEAD, MAIN, PROJECT, TINY, Web

FILES = f"{PROJECT}/repository/files"
ARCHIVE = f"{PROJECT}/repository/archive"
CONTENT = (TINY.folder / "gitlab/tree/src/widgets.txt").read_bytes()


def archive(web: Web, query: str = "", kind: str = ".tar.gz") -> httpx2.Response:
    return web.get(f"{ARCHIVE}{kind}{query}")


def names(answer: httpx2.Response) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tape:
        return [each.name for each in tape.getmembers() if each.isfile()]


@pytest.mark.parametrize("ref", [HEAD, HEAD[:8], "feature/faster", "refs/merge-requests/7/head"])
def test_facts_2_7_a_raw_file_is_what_it_is_at_the_head(web: Web, ref: str) -> None:
    answer = web.get(f"{FILES}/src%2Fwidgets.txt/raw", params={"ref": ref})
    assert answer.content == CONTENT
    assert answer.headers["x-gitlab-file-path"] == "src/widgets.txt"


@pytest.mark.parametrize("ref", ["main", BASE, MAIN, "HEAD"])
def test_before_the_merge_request_files_were_others(web: Web, ref: str) -> None:
    def text(path: str) -> tuple[int, str]:
        answer = web.get(f"{FILES}/{path}/raw", params={"ref": ref})
        return answer.status_code, answer.text

    assert text("src%2Fwidgets.txt") == (200, CONTENT.decode().replace("a - b", "a + b"))
    assert text("docs%2Fold.md") == (200, "old notes\n")
    assert text("docs%2Fnames.txt") == (200, "one\ntwo\nthree\nfour\nfive\n")
    assert text("docs%2Fnew.md")[0] == 404
    assert text("docs%2Fwords.txt")[0] == 404
    assert text("pyproject.toml")[0] == 200


def test_a_file_with_its_particulars(web: Web) -> None:
    shown = web.json(f"{FILES}/src%2Fwidgets.txt?ref={HEAD}")
    assert base64.b64decode(shown["content"]) == CONTENT
    assert (shown["size"], shown["content_sha256"]) == (len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    assert (shown["blob_id"][:7], shown["execute_filemode"]) == ("6521046", False)
    assert web.get(f"{FILES}/run.sh?ref={HEAD}", method="HEAD").headers["x-gitlab-execute-filemode"] == "true"


def test_a_name_that_no_header_holds_is_told_as_it_is_besides(web: Web) -> None:
    def rename(world: GitLabWorld) -> None:
        world.tree.head = {"☕/naïve.txt": world.tree.head["run.sh"]}

    web.lab.run_in_server(rename)
    answer = web.get(f"{FILES}/%E2%98%95%2Fna%C3%AFve.txt/raw?ref={HEAD}")
    assert answer.headers["content-disposition"] == "inline; filename=\"na?ve.txt\"; filename*=UTF-8''na%C3%AFve.txt"
    packed = archive(web, f"?sha={HEAD}&path=%E2%98%95")
    assert packed.headers["content-disposition"].endswith("%E2%98%95.tar.gz")
    assert len(names(packed)) == 1


def test_facts_2_7_a_missing_file_and_a_missing_commit_are_told_apart(web: Web) -> None:
    assert web.get(f"{FILES}/nothing/raw?ref={HEAD}").json() == {"message": "404 File Not Found"}
    assert web.get(f"{FILES}/run.sh/raw?ref=nothing").json() == {"message": "404 Commit Not Found"}


def test_facts_2_7_a_path_must_be_encoded(web: Web) -> None:
    assert web.get(f"{FILES}/src/widgets.txt/raw?ref={HEAD}").json() == {"error": "404 Not Found"}


def test_code_of_a_private_project_is_not_for_guests(web: Web) -> None:
    web.lab.run_in_server(lambda world: setattr(world.project.members[21], "access_level", 10))
    assert web.get(f"{FILES}/run.sh/raw").json() == {"message": "403 Forbidden"}


def test_facts_2_7_an_archive_is_a_tape_below_a_folder_with_the_sha(web: Web) -> None:
    answer = archive(web, f"?sha={HEAD}", kind="")
    folder = f"widgets-{HEAD}-{HEAD}"
    assert answer.headers["content-disposition"] == f'attachment; filename="{folder}.tar.gz"'
    assert names(answer) == [
        f"{folder}/{path}" for path in ("docs/new.md", "docs/words.txt", "pyproject.toml", "run.sh", "src/widgets.txt")
    ]
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tape:
        held = tape.extractfile(f"{folder}/src/widgets.txt")
        assert held is not None
        assert held.read() == CONTENT
        assert tape.getmember(f"{folder}/run.sh").mode & 0o100


def test_an_archive_of_the_default_branch_names_it(web: Web) -> None:
    found = names(archive(web))
    assert f"widgets-main-{MAIN}/docs/old.md" in found
    assert not any(each.endswith("docs/new.md") for each in found)


def test_an_archive_may_be_of_a_part(web: Web) -> None:
    answer = archive(web, f"?sha={HEAD}&path=docs")
    assert names(answer) == [f"widgets-{HEAD}-{HEAD}-docs/docs/{name}" for name in ("new.md", "words.txt")]
    assert len(names(archive(web, f"?sha={HEAD}&exclude_paths=docs,run.sh"))) == 2


@pytest.mark.parametrize("kind", [".tar", ".tar.bz2", ".tgz"])
def test_tapes_come_in_several_kinds(web: Web, kind: str) -> None:
    assert len(names(archive(web, f"?sha={HEAD}", kind))) == 5


def test_an_archive_may_be_a_zip(web: Web) -> None:
    with zipfile.ZipFile(io.BytesIO(archive(web, f"?sha={HEAD}", ".zip").content)) as bag:
        assert bag.read(f"widgets-{HEAD}-{HEAD}/src/widgets.txt") == CONTENT


@pytest.mark.parametrize(("query", "kind"), [("?sha=nothing", ""), ("", ".rar"), ("?path=nothing", "")])
def test_facts_2_7_whatever_fails_is_a_file_that_was_not_found(web: Web, query: str, kind: str) -> None:
    answer = archive(web, query, kind)
    assert (answer.status_code, answer.json()) == (404, {"message": "404 File Not Found"})


def test_facts_2_7_archives_are_five_a_minute(web: Web) -> None:
    assert [archive(web, "?sha=nothing").status_code for _ in range(5)] == [404] * 5
    answer = archive(web)
    assert answer.status_code == 429
    assert answer.json() == {"message": {"error": "This archive has been requested too many times. Try again later."}}
    assert "retry-after" not in answer.headers
    assert web.as_other(web.lab.write_token).get(ARCHIVE).status_code == 200
    web.lab.run_in_server(lambda world: world.advance(61))
    assert archive(web).status_code == 200


def test_a_commit_is_shown_with_its_last_pipeline(web: Web) -> None:
    shown = web.json(f"{PROJECT}/repository/commits/{HEAD}")
    assert (shown["title"], shown["status"], shown["last_pipeline"]["id"]) == ("Add faster", "failed", 9003)
    assert shown["parent_ids"] == ["a2" * 20]
    assert shown["stats"] == {"additions": 3, "deletions": 3, "total": 6}
    assert web.json(f"{PROJECT}/repository/commits/main")["id"] == MAIN
    assert web.get(f"{PROJECT}/repository/commits/nothing").json() == {"message": "404 Commit Not Found"}


def test_branches_have_their_commits(web: Web) -> None:
    assert web.json(f"{PROJECT}/repository/branches/feature%2Ffaster")["commit"]["id"] == HEAD
    assert [each["name"] for each in web.json(f"{PROJECT}/repository/branches")] == ["feature/faster", "main"]
    assert web.get(f"{PROJECT}/repository/branches/nothing").json() == {"message": "404 Branch Not Found"}


def test_commits_are_compared(web: Web) -> None:
    path = f"{PROJECT}/repository/compare"
    shown = web.json(path, params={"from": "main", "to": "feature/faster"})
    assert (len(shown["diffs"]), [each["id"] for each in shown["commits"]]) == (4, ["a2" * 20, HEAD])
    same = web.json(path, params={"from": HEAD, "to": "feature/faster"})
    assert (same["diffs"], same["compare_same_ref"]) == ([], True)
    assert web.get(path, params={"from": "main"}).json() == {"error": "to is missing"}
    assert web.get(path, params={"from": "9" * 40, "to": HEAD}).json() == {"message": "404 Ref Not Found"}


def test_a_commit_names_the_merge_requests_that_hold_it_whatever_their_state(web: Web) -> None:
    def asked(sha: str) -> list[tuple[int, str, str]]:
        shown = web.json(f"{PROJECT}/repository/commits/{sha}/merge_requests")
        return [(each["iid"], each["state"], each["sha"]) for each in shown]

    assert asked(HEAD) == asked(HEAD[:8]) == [(7, "opened", HEAD)]
    assert asked(MAIN) == []
    web.lab.run_in_server(lambda world: setattr(world.merge_request, "state", "merged"))
    assert asked(HEAD) == [(7, "merged", HEAD)]
    unknown = web.get(f"{PROJECT}/repository/commits/{'0' * 40}/merge_requests")
    assert (unknown.status_code, unknown.json()) == (404, {"message": "404 Commit Not Found"})


def test_a_commit_names_no_merge_requests_to_a_stranger(web: Web) -> None:
    assert web.as_other(None).get(f"{PROJECT}/repository/commits/{HEAD}/merge_requests").status_code in (403, 404)
