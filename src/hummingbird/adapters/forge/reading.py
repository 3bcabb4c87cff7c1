"""The reading half of the forge: one project, seen with the bot's rights. Changes nothing at GitLab."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

from hummingbird.adapters.forge.answers import Row, text, whole
from hummingbird.adapters.forge.client import Client, Door
from hummingbird.adapters.forge.markers import Markers
from hummingbird.adapters.forge.parsing import (
    checks_of,
    comparison_of,
    file_diff_of,
    merge_request_of,
    reaction_of,
)
from hummingbird.adapters.forge.threads import dismissing, thread_of
from hummingbird.domain.access import access_of
from hummingbird.domain.diffs import Comparison, FileDiff
from hummingbird.domain.errors import ForgeMissing, ForgeRefused
from hummingbird.domain.limits import (
    ACCESS_REMEMBERED,
    ACCESS_S,
    FORGE_DIFFS_PER_PAGE,
    FORGE_PAGES,
    FORGE_PIPELINES_LOOKED_AT,
    FORGE_REQUESTS_AT_MOST,
)
from hummingbird.domain.vote_limits import REACTIONS_READ
from hummingbird.domain.votes import Reaction
from hummingbird.ports.forge import DEVELOPER, Branch, Check, MergeRequest, OrchestratorToken, Thread

_SHA = re.compile(r"[0-9a-f]{7,64}")
_DISCUSSION = re.compile(r"[0-9A-Za-z]{1,64}")
_FINISHED = ("success", "failed")


class ReadingForge:
    """What the port says of reading. `former`: users that the bot was before."""

    def __init__(
        self, door: Door, token: OrchestratorToken, project: str, markers: Markers, former: frozenset[int]
    ) -> None:
        self._client = Client(door, token, project)
        self._project = project
        self._at = f"/projects/{quote(project, safe='')}"
        self._markers = markers
        self._former = former
        self._now = door.now
        self._own_id = 0
        self._asking = asyncio.Lock()
        self._access: dict[int, tuple[float, int]] = {}

    async def bot_ids(self) -> frozenset[int]:
        return self._former | {await self._me()}

    async def _me(self) -> int:
        async with self._asking:
            if not self._own_id:
                answer = await self._client.get("The bot's own user", "/user")
                self._own_id = whole(answer.row().get("id"))
        if not self._own_id:
            raise ForgeRefused("GitLab does not say which user the bot is: check the configured address.")
        return self._own_id

    async def merge_request(self, iid: int) -> MergeRequest:
        return merge_request_of(await self._client.get(self._named(iid), self._mr(iid)), iid, self._project)

    def _named(self, iid: int) -> str:
        return f"Merge request {iid} of {self._project}"

    def _mr(self, iid: int, rest: str = "") -> str:
        return f"{self._at}/merge_requests/{iid:d}{rest}"

    def _discussion(self, iid: int, discussion_id: str, rest: str = "") -> str:
        """Raises ForgeMissing for what can be no id."""
        if not _DISCUSSION.fullmatch(discussion_id):
            raise ForgeMissing(f"{self._named(iid)} has no such thread: its id is not one.")
        return self._mr(iid, f"/discussions/{discussion_id}{rest}")

    async def requests_at(self, sha: str) -> Sequence[MergeRequest]:
        """Each is read by itself: the list does not tell everything, and its head may have moved on meanwhile."""
        rows = await self._of_commit("The merge requests", sha, "merge_requests")
        iids = [whole(row.get("iid")) for row in rows if row.get("state") == "opened" and row.get("sha") == sha]
        found = [await self._still_there(iid) for iid in iids[:FORGE_REQUESTS_AT_MOST] if iid]
        return [each for each in found if each and each.change.head == sha and each.change.state == "opened"]

    async def _still_there(self, iid: int) -> MergeRequest | None:
        try:
            return await self.merge_request(iid)
        except ForgeMissing:
            return None

    async def parents(self, sha: str) -> frozenset[str]:
        if not _SHA.fullmatch(sha):
            return frozenset()
        try:
            answer = await self._client.get(f"A commit of {self._project}", f"{self._at}/repository/commits/{sha}")
        except ForgeMissing:
            return frozenset()
        listed = answer.row().get("parent_ids")
        return frozenset(text(each) for each in listed if text(each)) if isinstance(listed, list) else frozenset()

    async def _of_commit(self, what: str, sha: str, rest: str) -> list[Row]:
        if not _SHA.fullmatch(sha):
            return []
        return await self._listed(f"{what} of a commit", f"{self._at}/repository/commits/{sha}/{rest}")

    async def _listed(self, what: str, path: str) -> list[Row]:
        """All rows; none of what is not there."""
        try:
            return [row async for page in self._client.pages(f"{what} in {self._project}", path) for row in page]
        except ForgeMissing:
            return []

    async def checks(self, sha: str, pipeline_id: int = 0) -> Sequence[Check]:
        """Statuses are found by the commit of their pipeline: those of a merged result stand under another one, which
        nobody pushed (facts 2.5)."""
        found = checks_of(await self._of_commit("The statuses", sha, "statuses"))
        if pipeline_id and all(each.pipeline_id != pipeline_id for each in found):
            found += checks_of(await self._jobs(pipeline_id))
        return found

    async def _jobs(self, pipeline_id: int) -> list[Row]:
        """Of a pipeline of this project; a fork's is not there."""
        at = f"{self._at}/pipelines/{pipeline_id:d}"
        jobs = await self._listed("The jobs of a pipeline", f"{at}/jobs")
        return [*jobs, *await self._listed("The downstream pipelines", f"{at}/bridges")]

    async def access(self, user_id: int) -> int:
        known = self._access.get(user_id)
        if known is not None and 0 <= self._now() - known[0] < ACCESS_S:
            return known[1]
        level = await self._level(user_id)
        if len(self._access) >= ACCESS_REMEMBERED:
            self._access.clear()
        self._access[user_id] = (self._now(), level)
        return level

    async def _level(self, user_id: int) -> int:
        try:
            answer = await self._client.get(f"A member of {self._project}", f"{self._at}/members/all/{user_id:d}")
        except ForgeMissing:
            return 0
        member = answer.row()
        today = datetime.fromtimestamp(self._now(), UTC).date()
        return access_of(member, today) if whole(member.get("id")) == user_id else 0

    async def threads(self, iid: int) -> Sequence[Thread]:
        bots = await self.bot_ids()
        found: dict[str, Thread] = {}  # whoever writes meanwhile moves threads to the next page
        async for page in self._client.pages(f"The threads of {self._named(iid)}", self._mr(iid, "/discussions")):
            threads = (thread_of(row, bots, self._markers) for row in page)
            found |= {thread.id: thread for thread in threads if thread is not None}
        return [await self._judged(thread) for thread in found.values()]

    async def thread(self, iid: int, discussion_id: str) -> Thread | None:
        bots = await self.bot_ids()
        try:
            answer = await self._client.get(f"A thread of {self._named(iid)}", self._discussion(iid, discussion_id))
        except ForgeMissing:
            return None
        found = thread_of(answer.row(), bots, self._markers)
        return None if found is None else await self._judged(found)

    async def _judged(self, thread: Thread) -> Thread:
        """R5, I7: whoever is no developer dismisses nothing."""
        levels = [await self.access(person) for person in sorted(dismissing(thread)) if person]
        return replace(thread, dismissed=any(level >= DEVELOPER for level in levels))

    async def reactions(self, iid: int, note_id: int) -> Sequence[Reaction]:
        """Strangers may put any number there; that is no reason to read none."""
        found: list[Reaction] = []
        what, path = f"The emoji of a note of {self._named(iid)}", self._mr(iid, f"/notes/{note_id:d}/award_emoji")
        async with aclosing(self._client.pages(what, path)) as pages:
            async for page in pages:
                found += [reaction_of(row) for row in page]
                if len(found) >= REACTIONS_READ:
                    break
        return [each for each in found[:REACTIONS_READ] if each.user_id]

    async def diffs(self, iid: int) -> Sequence[FileDiff]:
        """No header says that there is another page: a full one does (facts 2.2)."""
        found: list[FileDiff] = []
        what, size = f"The diff of {self._named(iid)}", FORGE_DIFFS_PER_PAGE
        for page in range(1, FORGE_PAGES + 1):
            rows = (await self._client.get(what, self._mr(iid, "/diffs"), {"page": page, "per_page": size})).rows()
            found += [file_diff_of(row) for row in rows]
            if len(rows) != size:
                break
        return [each for each in found if each.old_path or each.new_path]

    async def compare(self, old: str, new: str) -> Comparison:
        what = f"A comparison of two commits of {self._project}"
        if not (_SHA.fullmatch(old) and _SHA.fullmatch(new)):
            raise ForgeMissing(f"{what} cannot be had: there are no such commits.")
        params: dict[str, str | int] = {"from": old, "to": new, "straight": "true"}
        return comparison_of((await self._client.get(what, f"{self._at}/repository/compare", params)).row())

    async def branch(self, name: str) -> Branch:
        params: dict[str, str | int] = {"ref": name, "per_page": FORGE_PIPELINES_LOOKED_AT}
        answer = await self._client.get(
            f"The pipelines of a branch of {self._project}", f"{self._at}/pipelines", params
        )
        newest = next((row for row in answer.rows() if row.get("status") in _FINISHED and whole(row.get("id"))), None)
        if newest is None:
            return Branch()
        number = whole(newest.get("id"))
        checks = await self.checks(text(newest.get("sha")), number)
        failed = frozenset(check.name for check in checks if check.status == "failed")
        return Branch(pipeline_id=number, url=text(newest.get("web_url")), failed_jobs=failed)
