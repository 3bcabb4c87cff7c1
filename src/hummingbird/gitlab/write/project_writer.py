"""Read and write one GitLab project with the bot's token: the implementation of `protocol.GitLabWriter`.

Every posted text is sanitized. GitLab silently publishes an internal note when the bot's role does not allow internal
notes, so each response is checked and a note that became public is deleted again.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from hummingbird.core.diffs import CommitComparison, DiffPosition, FileDiff
from hummingbird.core.errors import (
    GitLabNotFound,
    GitLabRequestRefused,
    GitLabWriteError,
    GitLabWriteUncertain,
    HummingbirdError,
    MissingSetting,
)
from hummingbird.core.limits import (
    ACCESS_REMEMBERED,
    ACCESS_S,
    FORGE_ANSWER_S,
    FORGE_DIFFS_PER_PAGE,
    FORGE_PAGES,
    FORGE_PER_PAGE,
    FORGE_PIPELINES_LOOKED_AT,
    FORGE_REQUESTS_AT_MOST,
)
from hummingbird.core.masking import Secrets
from hummingbird.core.votes import REACTIONS_READ, EmojiReaction
from hummingbird.gitlab.access import PLANNER, active_access_level
from hummingbird.gitlab.http_client import GitLabConnection, JsonObject
from hummingbird.gitlab.write.api_response import (
    GitLabResponse,
    find_dismissing_users,
    is_internal,
    parse_checks,
    parse_comparison,
    parse_draft_note,
    parse_file_diff,
    parse_merge_request,
    parse_reaction,
    parse_thread,
    positive_int,
    text_or_empty,
)
from hummingbird.gitlab.write.client import GitLabWriteClient, create_connection
from hummingbird.gitlab.write.note_sanitizer import render_note
from hummingbird.gitlab.write.protocol import (
    DEVELOPER,
    BranchStatus,
    CommitCheck,
    MergeRequestDetails,
    MergeRequestThread,
    NoteDraft,
    NoteMarkers,
    OrchestratorToken,
    PendingNote,
    PostedNoteRef,
)

_SHA = re.compile(r"[0-9a-f]{7,64}")
_DISCUSSION = re.compile(r"[0-9A-Za-z]{1,64}")
_FINISHED = ("success", "failed")


class GitLabProjectReader:
    """The reading half of `GitLabWriter`; it changes nothing at GitLab. `former` holds the bot's former user ids."""

    def __init__(
        self,
        connection: GitLabConnection,
        token: OrchestratorToken,
        project: str,
        markers: NoteMarkers,
        former: frozenset[int],
    ) -> None:
        self._client = GitLabWriteClient(connection, token, project)
        self._project = project
        self._project_path = f"/projects/{quote(project, safe='')}"
        self._markers = markers
        self._former_bot_ids = former
        self._now = connection.now
        self._own_id = 0
        self._own_id_lock = asyncio.Lock()
        self._access: dict[int, tuple[float, int]] = {}

    async def bot_ids(self) -> frozenset[int]:
        return self._former_bot_ids | {await self._get_own_id()}

    async def _get_own_id(self) -> int:
        async with self._own_id_lock:
            if not self._own_id:
                answer = await self._client.get("The bot's own user", "/user")
                self._own_id = positive_int(answer.json_object().get("id"))
        if not self._own_id:
            raise GitLabRequestRefused("GitLab does not say which user the bot is: check the configured address.")
        return self._own_id

    async def merge_request(self, iid: int) -> MergeRequestDetails:
        return parse_merge_request(
            await self._client.get(self._merge_request_name(iid), self._merge_request_path(iid)), iid, self._project
        )

    def _merge_request_name(self, iid: int) -> str:
        return f"Merge request {iid} of {self._project}"

    def _merge_request_path(self, iid: int, rest: str = "") -> str:
        return f"{self._project_path}/merge_requests/{iid:d}{rest}"

    def _discussion_path(self, iid: int, discussion_id: str, rest: str = "") -> str:
        """Return the path of a discussion. Raises GitLabNotFound for a malformed id."""
        if not _DISCUSSION.fullmatch(discussion_id):
            raise GitLabNotFound(f"{self._merge_request_name(iid)} has no such thread: its id is malformed.")
        return self._merge_request_path(iid, f"/discussions/{discussion_id}{rest}")

    async def merge_requests_at(self, sha: str) -> Sequence[MergeRequestDetails]:
        """Return the open merge requests whose head is this commit.

        Each one is read individually: the list lacks some fields, and the head may have moved meanwhile.
        """
        rows = await self._list_for_commit("The merge requests", sha, "merge_requests")
        iids = [positive_int(row.get("iid")) for row in rows if row.get("state") == "opened" and row.get("sha") == sha]
        found = [await self._find_merge_request(iid) for iid in iids[:FORGE_REQUESTS_AT_MOST] if iid]
        return [each for each in found if each and each.change.head == sha and each.change.state == "opened"]

    async def _find_merge_request(self, iid: int) -> MergeRequestDetails | None:
        try:
            return await self.merge_request(iid)
        except GitLabNotFound:
            return None

    async def parents(self, sha: str) -> frozenset[str]:
        if not _SHA.fullmatch(sha):
            return frozenset()
        try:
            answer = await self._client.get(
                f"A commit of {self._project}", f"{self._project_path}/repository/commits/{sha}"
            )
        except GitLabNotFound:
            return frozenset()
        listed = answer.json_object().get("parent_ids")
        return (
            frozenset(text_or_empty(each) for each in listed if text_or_empty(each))
            if isinstance(listed, list)
            else frozenset()
        )

    async def _list_for_commit(self, what: str, sha: str, rest: str) -> list[JsonObject]:
        if not _SHA.fullmatch(sha):
            return []
        return await self._list_all(f"{what} of a commit", f"{self._project_path}/repository/commits/{sha}/{rest}")

    async def _list_all(self, what: str, path: str) -> list[JsonObject]:
        """Return all rows of a list; none when GitLab answers 404."""
        try:
            return [row async for page in self._client.get_pages(f"{what} in {self._project}", path) for row in page]
        except GitLabNotFound:
            return []

    async def checks(self, sha: str, pipeline_id: int = 0) -> Sequence[CommitCheck]:
        """Return the latest check of each name.

        GitLab lists statuses under the commit of their pipeline. A merged results pipeline runs on a merge commit that
        nobody pushed, so its jobs are read separately.
        """
        found = parse_checks(await self._list_for_commit("The statuses", sha, "statuses"))
        if pipeline_id and all(each.pipeline_id != pipeline_id for each in found):
            found += parse_checks(await self._list_jobs(pipeline_id))
        return found

    async def _list_jobs(self, pipeline_id: int) -> list[JsonObject]:
        """Return jobs and bridges of a pipeline of this project; none for a fork's pipeline."""
        at = f"{self._project_path}/pipelines/{pipeline_id:d}"
        jobs = await self._list_all("The jobs of a pipeline", f"{at}/jobs")
        return [*jobs, *await self._list_all("The downstream pipelines", f"{at}/bridges")]

    async def access_level(self, user_id: int) -> int:
        known = self._access.get(user_id)
        if known is not None and 0 <= self._now() - known[0] < ACCESS_S:
            return known[1]
        level = await self._fetch_access_level(user_id)
        if len(self._access) >= ACCESS_REMEMBERED:
            self._access.clear()
        self._access[user_id] = (self._now(), level)
        return level

    async def _fetch_access_level(self, user_id: int) -> int:
        try:
            answer = await self._client.get(
                f"A member of {self._project}", f"{self._project_path}/members/all/{user_id:d}"
            )
        except GitLabNotFound:
            return 0
        member = answer.json_object()
        today = datetime.fromtimestamp(self._now(), UTC).date()
        return active_access_level(member, today) if positive_int(member.get("id")) == user_id else 0

    async def threads(self, iid: int) -> Sequence[MergeRequestThread]:
        bots = await self.bot_ids()
        found: dict[str, MergeRequestThread] = {}  # by id: notes written meanwhile move threads to the next page
        async for page in self._client.get_pages(
            f"The threads of {self._merge_request_name(iid)}", self._merge_request_path(iid, "/discussions")
        ):
            threads = (parse_thread(row, bots, self._markers) for row in page)
            found |= {thread.id: thread for thread in threads if thread is not None}
        return [await self._with_dismissal(thread) for thread in found.values()]

    async def thread(self, iid: int, discussion_id: str) -> MergeRequestThread | None:
        bots = await self.bot_ids()
        try:
            answer = await self._client.get(
                f"A thread of {self._merge_request_name(iid)}", self._discussion_path(iid, discussion_id)
            )
        except GitLabNotFound:
            return None
        found = parse_thread(answer.json_object(), bots, self._markers)
        return None if found is None else await self._with_dismissal(found)

    async def _with_dismissal(self, thread: MergeRequestThread) -> MergeRequestThread:
        """Mark the thread as dismissed if a developer dismissed it; the words of other people do not count."""
        levels = [await self.access_level(person) for person in sorted(find_dismissing_users(thread)) if person]
        return replace(thread, dismissed=any(level >= DEVELOPER for level in levels))

    async def reactions(self, iid: int, note_id: int) -> Sequence[EmojiReaction]:
        """Return at most REACTIONS_READ reactions; anybody may add any number, so a longer list is cut off."""
        found: list[EmojiReaction] = []
        what, path = (
            f"The emoji of a note of {self._merge_request_name(iid)}",
            self._merge_request_path(iid, f"/notes/{note_id:d}/award_emoji"),
        )
        async with aclosing(self._client.get_pages(what, path)) as pages:
            async for page in pages:
                found += [parse_reaction(row) for row in page]
                if len(found) >= REACTIONS_READ:
                    break
        return [each for each in found[:REACTIONS_READ] if each.user_id]

    async def diffs(self, iid: int) -> Sequence[FileDiff]:
        """Return the diff of each file. GitLab sends no paging headers here: a page that is not full is the last."""
        found: list[FileDiff] = []
        what, size = f"The diff of {self._merge_request_name(iid)}", FORGE_DIFFS_PER_PAGE
        for page in range(1, FORGE_PAGES + 1):
            rows = (
                await self._client.get(what, self._merge_request_path(iid, "/diffs"), {"page": page, "per_page": size})
            ).json_objects()
            found += [parse_file_diff(row) for row in rows]
            if len(rows) != size:
                break
        return [each for each in found if each.old_path or each.new_path]

    async def compare_commits(self, old: str, new: str) -> CommitComparison:
        what = f"A comparison of two commits of {self._project}"
        if not (_SHA.fullmatch(old) and _SHA.fullmatch(new)):
            raise GitLabNotFound(f"{what} is not possible: there are no such commits.")
        params: dict[str, str | int] = {"from": old, "to": new, "straight": "true"}
        return parse_comparison(
            (await self._client.get(what, f"{self._project_path}/repository/compare", params)).json_object()
        )

    async def branch_status(self, name: str) -> BranchStatus:
        params: dict[str, str | int] = {"ref": name, "per_page": FORGE_PIPELINES_LOOKED_AT}
        answer = await self._client.get(
            f"The pipelines of a branch of {self._project}", f"{self._project_path}/pipelines", params
        )
        newest = next(
            (row for row in answer.json_objects() if row.get("status") in _FINISHED and positive_int(row.get("id"))),
            None,
        )
        if newest is None:
            return BranchStatus()
        number = positive_int(newest.get("id"))
        checks = await self.checks(text_or_empty(newest.get("sha")), number)
        failed = frozenset(check.name for check in checks if check.status == "failed")
        return BranchStatus(pipeline_id=number, url=text_or_empty(newest.get("web_url")), failed_jobs=failed)


_ROLE_HINT = "give it at least the role Planner (Reporter before GitLab 17.7) in the project"


class GitLabProjectWriter(GitLabProjectReader):
    """Read and write one project."""

    def __init__(
        self,
        connection: GitLabConnection,
        token: OrchestratorToken,
        project: str,
        markers: NoteMarkers,
        former: frozenset[int],
        *,
        secrets: Secrets,
    ) -> None:
        super().__init__(connection, token, project, markers, former)
        self._secrets = secrets

    async def open_thread(self, iid: int, draft: NoteDraft, *, internal: bool) -> PostedNoteRef:
        if internal:
            return await self._post_internal_note(iid, draft)
        return await self._post_discussion(iid, {"body": await self._render_body(draft)})

    async def open_line_thread(
        self, merge_request: MergeRequestDetails, spot: DiffPosition, draft: NoteDraft
    ) -> PostedNoteRef:
        position = _diff_position(merge_request, spot)
        return await self._post_discussion(
            merge_request.change.iid, {"body": await self._render_body(draft), "position": position}
        )

    async def _render_body(self, draft: NoteDraft) -> str:
        """Render the note in a thread, because a long text takes up to a second."""
        return await asyncio.to_thread(render_note, draft, self._markers, self._secrets)

    async def _post_discussion(self, iid: int, sent: dict[str, Any]) -> PostedNoteRef:
        what = f"A thread of {self._merge_request_name(iid)}"
        answer = await self._client.write(what, "POST", self._merge_request_path(iid, "/discussions"), sent)
        raw = _require_written_object(answer)
        listed = raw.get("notes")
        first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
        name, note = text_or_empty(raw.get("id")), positive_int(first.get("id"))
        if not name or not note:
            raise _nothing_written_error(answer)
        return PostedNoteRef(name, note, is_internal(first))

    async def _post_internal_note(self, iid: int, draft: NoteDraft) -> PostedNoteRef:
        await self._check_internal_allowed()
        sent = {"body": await self._render_body(draft), "internal": True}
        answer = await self._client.write(
            f"An internal note of {self._merge_request_name(iid)}",
            "POST",
            self._merge_request_path(iid, "/notes"),
            sent,
        )
        note = _require_written_note(answer)
        if not is_internal(note):
            raise await self._delete_public_note(iid, positive_int(note.get("id")))
        return PostedNoteRef(await self._find_discussion_id(iid, note), positive_int(note.get("id")), True)

    async def _check_internal_allowed(self) -> None:
        """Raise GitLabRequestRefused if the bot's role is too low, before anything is published.

        An administrator who is not a member has no level here; for one, only the response shows whether it worked.
        """
        if 0 < await self.access_level(await self._get_own_id()) < PLANNER:
            raise GitLabRequestRefused(f"The bot may not write internal notes in {self._project}: {_ROLE_HINT}.")

    async def _delete_public_note(self, iid: int, note_id: int) -> GitLabRequestRefused:
        """Delete a note that GitLab made public, and return the error to raise."""
        path = self._merge_request_path(iid, f"/notes/{note_id:d}")
        try:
            await self._client.write_idempotent(f"Note {note_id}", "DELETE", path, fine=(404,))
        except HummingbirdError as error:
            return GitLabRequestRefused(
                f"GitLab published note {note_id} of {self._merge_request_name(iid)}, which was to be "
                "internal, and it could not be "
                f"deleted: delete it, and {_ROLE_HINT} ({error})"
            )
        return GitLabRequestRefused(
            f"GitLab published a note of {self._merge_request_name(iid)} that was to be internal, and "
            "it was deleted again: the bot "
            f"may not write internal notes; {_ROLE_HINT}."
        )

    async def _find_discussion_id(self, iid: int, note: JsonObject) -> str:
        """Return the id of the note's thread. Raises GitLabWriteUncertain if it cannot be found."""
        if name := text_or_empty(note.get("discussion_id")):
            return name
        try:
            found = await self._search_discussion_id(iid, positive_int(note.get("id")))
        except GitLabWriteError as error:
            raise GitLabWriteUncertain(
                f"A note of {self._merge_request_name(iid)} was written, but its thread could not be "
                "looked up: look for it again."
            ) from error
        if not found:
            raise GitLabWriteUncertain(
                f"A note of {self._merge_request_name(iid)} was written, but it is in no thread: look for it again."
            )
        return found

    async def _search_discussion_id(self, iid: int, note_id: int) -> str:
        """Search the first and the last page, where the newest threads are; then all pages in order."""
        what, path = f"The threads of {self._merge_request_name(iid)}", self._merge_request_path(iid, "/discussions")
        first = await self._client.get(what, path, {"per_page": FORGE_PER_PAGE, "page": 1})
        last = first.last_page
        rows = first.json_objects()
        if last > 1:
            rows += (await self._client.get(what, path, {"per_page": FORGE_PER_PAGE, "page": last})).json_objects()
        if name := _discussion_with_note(rows, note_id):
            return name
        async for page in self._client.get_pages(what, path):
            if name := _discussion_with_note(page, note_id):
                return name
        return ""

    async def reply(self, iid: int, thread: MergeRequestThread, draft: NoteDraft) -> PostedNoteRef:
        path = self._discussion_path(iid, thread.id, "/notes")
        answer = await self._client.write(
            f"A reply in {self._merge_request_name(iid)}", "POST", path, {"body": await self._render_body(draft)}
        )
        note = _require_written_note(answer)
        if thread.internal and not is_internal(note):
            raise await self._delete_public_note(iid, positive_int(note.get("id")))
        return PostedNoteRef(thread.id, positive_int(note.get("id")), is_internal(note))

    async def pending_notes(self, iid: int) -> Sequence[PendingNote]:
        """Return the bot's draft notes; GitLab shows nobody the draft notes of others."""
        pages = self._client.get_pages(
            f"The draft notes of {self._merge_request_name(iid)}", self._merge_request_path(iid, "/draft_notes")
        )
        rows = {positive_int(row.get("id")): row async for page in pages for row in page}
        return [parse_draft_note(row, self._markers) for number, row in sorted(rows.items()) if number]

    async def add_pending_note(
        self, merge_request: MergeRequestDetails, place: DiffPosition | MergeRequestThread, draft: NoteDraft
    ) -> None:
        """Add a draft note. A reply reopens its thread unless it is sent with `resolve_discussion`."""
        iid = merge_request.change.iid
        if isinstance(place, MergeRequestThread):
            sent: dict[str, Any] = {"in_reply_to_discussion_id": place.id, "resolve_discussion": place.resolved}
        else:
            sent = {"position": _diff_position(merge_request, place)}
        what = f"A draft note of {self._merge_request_name(iid)}"
        answer = await self._client.write(
            what,
            "POST",
            self._merge_request_path(iid, "/draft_notes"),
            {"note": await self._render_body(draft), **sent},
        )
        _require_written_note(answer)

    async def publish_pending_notes(self, iid: int) -> None:
        what = f"The publishing of draft notes of {self._merge_request_name(iid)}"
        await self._client.write(what, "POST", self._merge_request_path(iid, "/draft_notes/bulk_publish"), {})

    async def delete_pending_note(self, iid: int, held_id: int) -> None:
        path = self._merge_request_path(iid, f"/draft_notes/{held_id:d}")
        await self._client.write_idempotent(f"Draft note {held_id}", "DELETE", path, fine=(404,))

    async def add_emoji(self, iid: int, note_id: int, emoji: str) -> None:
        """Put an emoji on a note. GitLab answers 404 both when it is there already and when the note is gone."""
        what, path = f"An emoji on note {note_id}", self._merge_request_path(iid, f"/notes/{note_id:d}/award_emoji")
        answer = await self._client.write_idempotent(what, "POST", path, {"name": emoji}, fine=(404,))
        if answer.status == 404 and "already been taken" not in answer.error_text:
            raise GitLabNotFound(f"{what} was not put there: the note is gone, or there is no such emoji.")

    async def resolve(self, iid: int, discussion_id: str) -> None:
        """Resolve a thread.

        GitLab answers 403 when it cannot be resolved: nobody has replied yet, or the bot is not a developer.
        """
        path = self._discussion_path(iid, discussion_id)
        await self._client.write_idempotent("The end of a thread", "PUT", path, {"resolved": True}, fine=(403,))

    async def reopen(self, iid: int, discussion_id: str) -> None:
        path = self._discussion_path(iid, discussion_id)
        await self._client.write_idempotent("The opening of a thread", "PUT", path, {"resolved": False}, fine=(403,))


def _diff_position(merge_request: MergeRequestDetails, spot: DiffPosition) -> dict[str, str | int]:
    """Return the position as GitLab's API expects it: no `old_line` for an added line, no `new_line` for a removed one.

    Raises GitLabRequestRefused while GitLab prepares the diff.
    """
    head = merge_request.change.head
    if not (merge_request.base_sha and merge_request.start_sha and head):
        raise GitLabRequestRefused("The diff of this merge request is not ready for comments yet: try again later.")
    lines = {"old_line": spot.old_line, "new_line": spot.new_line}
    return {
        "position_type": "text",
        "base_sha": merge_request.base_sha,
        "start_sha": merge_request.start_sha,
        "head_sha": head,
        "old_path": spot.old_path,
        "new_path": spot.new_path,
        **{name: number for name, number in lines.items() if number},
    }


def _require_written_object(answer: GitLabResponse) -> JsonObject:
    """Return the object that GitLab created.

    Raises GitLabWriteUncertain for a response that cannot be parsed, and GitLabRequestRefused when nothing was created
    (status 202: GitLab executed the whole text as quick actions).
    """
    if answer.status == 202:
        raise _nothing_written_error(answer)
    try:
        return answer.json_object()
    except GitLabWriteError as error:
        raise GitLabWriteUncertain(
            f"{answer.what} may have been written to GitLab or not: its answer cannot be read. Look whether it is "
            "there before writing it again."
        ) from error


def _require_written_note(answer: GitLabResponse) -> JsonObject:
    note = _require_written_object(answer)
    if not positive_int(note.get("id")):
        raise _nothing_written_error(answer)
    return note


def _nothing_written_error(answer: GitLabResponse) -> GitLabRequestRefused:
    return GitLabRequestRefused(
        f"{answer.what} was not kept: GitLab took all of it for quick actions, or answered without an id. Look at the "
        "merge request, and report this: no text should get there."
    )


def _discussion_with_note(rows: list[JsonObject], note_id: int) -> str:
    """Return the id of the discussion that holds the note; empty if none does."""
    for row in rows:
        notes = row.get("notes")
        listed = notes if isinstance(notes, list) else []
        if any(isinstance(note, dict) and note.get("id") == note_id for note in listed):
            return text_or_empty(row.get("id"))
    return ""


class GitLabProjectWriters:
    """Provide a `GitLabProjectWriter` for each project, over shared connections.

    `token_of` is called each time, so a token may change while the service runs; it raises MissingSetting if a project
    has none. `answer_s` limits how long a response may take; `pause` sleeps between two attempts.
    """

    def __init__(
        self,
        url: str,
        token_of: Callable[[str], OrchestratorToken],
        *,
        secrets: Secrets,
        marker_prefix: str,
        former_bot_ids: Iterable[int] = (),
        ca_bundle: str = "",
        now: Callable[[], float] = time.time,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        answer_s: float = FORGE_ANSWER_S,
    ) -> None:
        """Raises MissingSetting for certificates or proxies that cannot be used."""
        self._connection = create_connection(url, ca_bundle, answer_s, sleep=pause, now=now)
        self._token_of = token_of
        self._secrets = secrets
        self._markers = NoteMarkers(marker_prefix)
        self._former_bot_ids = frozenset(each for each in former_bot_ids if each > 0)  # 0 stands for no user
        self._writers_by_project: dict[str, tuple[str, GitLabProjectWriter]] = {}

    def writer_for(self, project: str) -> GitLabProjectWriter:
        """Return the project's writer, a new one when its token has changed. Raises MissingSetting."""
        token = self._token_of(project)
        value = _check_token(token, project)
        known = self._writers_by_project.get(project)
        if known is None or known[0] != value:
            forge = GitLabProjectWriter(
                self._connection, token, project, self._markers, self._former_bot_ids, secrets=self._secrets
            )
            known = self._writers_by_project[project] = (value, forge)
        return known[1]

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.http.aclose()


def _check_token(token: OrchestratorToken, project: str) -> str:
    """Return the token's value; raise MissingSetting if no header can hold it.

    The HTTP client's own error would quote the value.
    """
    value = token.reveal()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise MissingSetting(
            f"The token that writes to {project} is empty, or holds a blank, a line break or a letter that is not "
            "ASCII: copy it again into the orchestrator token's variable."
        )
    return value
