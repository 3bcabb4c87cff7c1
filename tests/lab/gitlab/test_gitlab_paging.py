"""Pages: with headers, without, and by cursor."""

import dataclasses

import gitlab
import pytest

from hummingbird.lab.gitlab.world import GitLabWorld
from tests.lab.gitlab.asking import MR, PROJECT, Web


def many_notes(world: GitLabWorld, count: int) -> None:
    """Public notes, each a thread of its own."""
    author = world.user(11)
    for number in range(count):
        world.add_discussion(world.merge_request, world.new_note(author, f"note {number}"), individual=True)


def test_facts_2_8_a_page_says_where_it_is(web: Web) -> None:
    web.lab.run_in_server(lambda world: many_notes(world, 3))  # 8 threads with the case's own
    answer = web.get(f"{MR}/discussions?per_page=3&page=2")
    here = f"{web.lab.url}/api/v4{MR}/discussions"
    assert answer.headers["link"] == (
        f'<{here}?page=1&per_page=3>; rel="prev", <{here}?page=3&per_page=3>; rel="next", '
        f'<{here}?page=1&per_page=3>; rel="first", <{here}?page=3&per_page=3>; rel="last"'
    )
    told = {
        name: answer.headers[f"x-{name}"]
        for name in ("next-page", "page", "per-page", "prev-page", "total", "total-pages")
    }
    assert told == {"next-page": "3", "page": "2", "per-page": "3", "prev-page": "1", "total": "8", "total-pages": "3"}


def test_facts_2_8_the_last_page_has_an_empty_next_page(web: Web) -> None:
    answer = web.get(f"{MR}/commits?per_page=1&page=2")
    assert answer.headers["x-next-page"] == ""
    assert 'rel="next"' not in answer.headers["link"]


@pytest.mark.parametrize(
    ("asked", "got"), [("", 20), ("?per_page=100", 100), ("?per_page=500", 100), ("?per_page=0", 20)]
)
def test_facts_2_8_twenty_rows_unless_asked_and_never_more_than_a_hundred(web: Web, asked: str, got: int) -> None:
    web.lab.run_in_server(lambda world: many_notes(world, 130))
    answer = web.get(f"{MR}/notes{asked}")
    assert (len(answer.json()), answer.headers["x-per-page"]) == (got, str(got))


def test_facts_2_8_links_keep_the_other_parameters(web: Web) -> None:
    link = web.get(f"{MR}/notes?sort=asc&per_page=2").headers["link"]
    assert f"{MR}/notes?sort=asc&page=2&per_page=2" in link


def test_facts_2_8_links_are_on_the_external_address_and_python_gitlab_follows_them_there(web: Web) -> None:
    """Under another name for the same machine, so that the link leads back to the lab."""
    elsewhere = web.lab.url.replace("127.0.0.1", "localhost")
    web.lab.run_in_server(lambda world: setattr(world, "url", elsewhere))
    assert web.get(f"{MR}/notes?per_page=2").links["next"]["url"].startswith(elsewhere)
    with gitlab.Gitlab(web.lab.url, private_token=web.lab.read_token) as client:
        mr = client.projects.get(101, lazy=True).mergerequests.get(7, lazy=True)
        with pytest.warns(UserWarning, match="localhost"):
            assert len(mr.notes.list(per_page=2, get_all=True)) == 7
    assert {each.username for each in web.lab.requests[-3:]} == {"project_101_bot_1"}


def test_facts_2_8_above_ten_thousand_rows_nobody_counts(web: Web) -> None:
    assert web.lab.world.limits.counted_rows == 10_000
    web.lab.run_in_server(lambda world: many_notes(world, 10_001))
    answer = web.get(f"{MR}/discussions")
    assert not {"x-total", "x-total-pages"} & set(answer.headers)
    assert 'rel="last"' not in answer.headers["link"]
    assert 'rel="next"' in answer.headers["link"]


def test_facts_2_2_diffs_come_in_pages_without_headers(web: Web) -> None:
    first, last, beyond = (web.get(f"{MR}/diffs?per_page=3&page={page}") for page in (1, 2, 3))
    assert [len(each.json()) for each in (first, last, beyond)] == [3, 1, 0]
    assert not [name for name in first.headers if name == "link" or name in ("x-page", "x-total", "x-next-page")]


def test_facts_2_2_a_long_diff_is_cut_at_twenty_files(web: Web) -> None:
    def grow(world: GitLabWorld) -> None:
        file = world.merge_request.files[0]
        world.merge_request.files = [dataclasses.replace(file, new_path=f"f{number}") for number in range(25)]

    web.lab.run_in_server(grow)
    assert len(web.json(f"{MR}/diffs")) == 20


def test_facts_2_8_jobs_can_be_listed_by_cursor(web: Web) -> None:
    rows: list[int] = []
    path: str | None = f"{PROJECT}/jobs?pagination=keyset&per_page=2"
    while path:
        answer = web.get(path)
        assert "x-total" not in answer.headers
        rows += [each["id"] for each in answer.json()]
        path = answer.links["next"]["url"] if "next" in answer.links else None
    assert rows == [70010, 70003, 70002, 70001, 70000, 60001]


def test_a_cursor_that_is_not_ours_is_refused(web: Web) -> None:
    assert web.get(f"{PROJECT}/jobs?pagination=keyset&cursor=abc").json() == {"error": "cursor is invalid"}


def test_facts_2_8_notes_have_no_cursor(web: Web) -> None:
    assert "x-page" in web.get(f"{MR}/notes?pagination=keyset").headers
