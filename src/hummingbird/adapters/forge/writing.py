"""The forge of one project: reading, and the writes (N1, N3). Every text is sanitized on its way.

Whether an internal note is one is looked at in GitLab's answer: it publishes, without a word, what the bot may not keep
to itself (facts 2.3).
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from hummingbird.adapters.forge.answers import Answer, Row, text, whole
from hummingbird.adapters.forge.client import Door
from hummingbird.adapters.forge.markers import Markers
from hummingbird.adapters.forge.reading import ReadingForge
from hummingbird.adapters.forge.rendering import rendered
from hummingbird.adapters.forge.threads import held_of, is_internal
from hummingbird.domain.access import PLANNER
from hummingbird.domain.diffs import Spot
from hummingbird.domain.errors import ForgeError, ForgeMissing, ForgeRefused, HummingbirdError, WriteUncertain
from hummingbird.domain.limits import FORGE_PER_PAGE
from hummingbird.domain.notes import Draft
from hummingbird.domain.secrets import Secrets
from hummingbird.ports.forge import Held, MergeRequest, OrchestratorToken, Posted, Thread

_NEEDS = "give it at least the role Planner (Reporter before GitLab 17.7) in the project"


class GitLabForge(ReadingForge):
    """What the port says."""

    def __init__(
        self,
        door: Door,
        token: OrchestratorToken,
        project: str,
        markers: Markers,
        former: frozenset[int],
        *,
        secrets: Secrets,
    ) -> None:
        super().__init__(door, token, project, markers, former)
        self._secrets = secrets

    async def open_thread(self, iid: int, draft: Draft, *, internal: bool) -> Posted:
        if internal:
            return await self._open_internal(iid, draft)
        return await self._open(iid, {"body": await self._body(draft)})

    async def comment(self, merge_request: MergeRequest, spot: Spot, draft: Draft) -> Posted:
        position = _position(merge_request, spot)
        return await self._open(merge_request.change.iid, {"body": await self._body(draft), "position": position})

    async def _body(self, draft: Draft) -> str:
        """Render in a thread: a long text takes up to a second."""
        return await asyncio.to_thread(rendered, draft, self._markers, self._secrets)

    async def _open(self, iid: int, sent: dict[str, Any]) -> Posted:
        what = f"A thread of {self._named(iid)}"
        answer = await self._client.write(what, "POST", self._mr(iid, "/discussions"), sent)
        raw = _kept(answer)
        listed = raw.get("notes")
        first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
        name, note = text(raw.get("id")), whole(first.get("id"))
        if not name or not note:
            raise _nothing(answer)
        return Posted(name, note, is_internal(first))

    async def _open_internal(self, iid: int, draft: Draft) -> Posted:
        await self._may_be_internal()
        sent = {"body": await self._body(draft), "internal": True}
        answer = await self._client.write(
            f"An internal note of {self._named(iid)}", "POST", self._mr(iid, "/notes"), sent
        )
        note = _noted(answer)
        if not is_internal(note):
            raise await self._taken_back(iid, whole(note.get("id")))
        return Posted(await self._discussion_of(iid, note), whole(note.get("id")), True)

    async def _may_be_internal(self) -> None:
        """Raises ForgeRefused before anything is published. Of an administrator who is no member GitLab does not say,
        so that is seen in the answer."""
        if 0 < await self.access(await self._me()) < PLANNER:
            raise ForgeRefused(f"The bot may not write internal notes in {self._project}: {_NEEDS}.")

    async def _taken_back(self, iid: int, note_id: int) -> ForgeRefused:
        """The note is public: away with it."""
        path = self._mr(iid, f"/notes/{note_id:d}")
        try:
            await self._client.settle(f"Note {note_id}", "DELETE", path, fine=(404,))
        except HummingbirdError as error:
            return ForgeRefused(
                f"GitLab published note {note_id} of {self._named(iid)}, which was to be internal, and it could not be "
                f"deleted: delete it, and {_NEEDS} ({error})"
            )
        return ForgeRefused(
            f"GitLab published a note of {self._named(iid)} that was to be internal, and it was deleted again: the bot "
            f"may not write internal notes; {_NEEDS}."
        )

    async def _discussion_of(self, iid: int, note: Row) -> str:
        """Raises WriteUncertain: the note is there, but nobody can say in which thread."""
        if name := text(note.get("discussion_id")):
            return name
        try:
            found = await self._sought(iid, whole(note.get("id")))
        except ForgeError as error:
            raise WriteUncertain(
                f"A note of {self._named(iid)} was written, but its thread could not be looked up: look for it again."
            ) from error
        if not found:
            raise WriteUncertain(
                f"A note of {self._named(iid)} was written, but it is in no thread: look for it again."
            )
        return found

    async def _sought(self, iid: int, note_id: int) -> str:
        """The last page first, for the newest threads stand there; then all, from the first one on."""
        what, path = f"The threads of {self._named(iid)}", self._mr(iid, "/discussions")
        first = await self._client.get(what, path, {"per_page": FORGE_PER_PAGE, "page": 1})
        last = first.last_page
        rows = first.rows()
        if last > 1:
            rows += (await self._client.get(what, path, {"per_page": FORGE_PER_PAGE, "page": last})).rows()
        if name := _holding(rows, note_id):
            return name
        async for page in self._client.pages(what, path):
            if name := _holding(page, note_id):
                return name
        return ""

    async def reply(self, iid: int, thread: Thread, draft: Draft) -> Posted:
        path = self._discussion(iid, thread.id, "/notes")
        answer = await self._client.write(
            f"A reply in {self._named(iid)}", "POST", path, {"body": await self._body(draft)}
        )
        note = _noted(answer)
        if thread.internal and not is_internal(note):
            raise await self._taken_back(iid, whole(note.get("id")))
        return Posted(thread.id, whole(note.get("id")), is_internal(note))

    async def held(self, iid: int) -> Sequence[Held]:
        """GitLab shows nobody the draft notes of others."""
        pages = self._client.pages(f"The draft notes of {self._named(iid)}", self._mr(iid, "/draft_notes"))
        rows = {whole(row.get("id")): row async for page in pages for row in page}
        return [held_of(row, self._markers) for number, row in sorted(rows.items()) if number]

    async def hold(self, merge_request: MergeRequest, place: Spot | Thread, draft: Draft) -> None:
        """A reply un-resolves its thread unless it says that it resolves it."""
        iid = merge_request.change.iid
        if isinstance(place, Thread):
            sent: dict[str, Any] = {"in_reply_to_discussion_id": place.id, "resolve_discussion": place.resolved}
        else:
            sent = {"position": _position(merge_request, place)}
        what = f"A draft note of {self._named(iid)}"
        answer = await self._client.write(
            what, "POST", self._mr(iid, "/draft_notes"), {"note": await self._body(draft), **sent}
        )
        _noted(answer)

    async def release(self, iid: int) -> None:
        what = f"The publishing of draft notes of {self._named(iid)}"
        await self._client.write(what, "POST", self._mr(iid, "/draft_notes/bulk_publish"), {})

    async def drop(self, iid: int, held_id: int) -> None:
        path = self._mr(iid, f"/draft_notes/{held_id:d}")
        await self._client.settle(f"Draft note {held_id}", "DELETE", path, fine=(404,))

    async def award(self, iid: int, note_id: int, emoji: str) -> None:
        """GitLab says with status 404 that it is there already."""
        what, path = f"An emoji on note {note_id}", self._mr(iid, f"/notes/{note_id:d}/award_emoji")
        answer = await self._client.settle(what, "POST", path, {"name": emoji}, fine=(404,))
        if answer.status == 404 and "already been taken" not in answer.said:
            raise ForgeMissing(f"{what} was not put there: the note is gone, or there is no such emoji.")

    async def resolve(self, iid: int, discussion_id: str) -> None:
        """GitLab says with status 403 that it cannot be: nobody replied yet, or the bot is no developer."""
        path = self._discussion(iid, discussion_id)
        await self._client.settle("The end of a thread", "PUT", path, {"resolved": True}, fine=(403,))

    async def reopen(self, iid: int, discussion_id: str) -> None:
        path = self._discussion(iid, discussion_id)
        await self._client.settle("The opening of a thread", "PUT", path, {"resolved": False}, fine=(403,))


def _position(merge_request: MergeRequest, spot: Spot) -> dict[str, str | int]:
    """Raises ForgeRefused while GitLab prepares the diff. An added line has no old number, a removed one no new one
    (facts 2.4)."""
    head = merge_request.change.head
    if not (merge_request.base_sha and merge_request.start_sha and head):
        raise ForgeRefused("The diff of this merge request is not ready for comments yet: try again later.")
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


def _kept(answer: Answer) -> Row:
    """What GitLab made of a write. Raises WriteUncertain for an answer that cannot be read, ForgeRefused where nothing
    was kept."""
    if answer.status == 202:
        raise _nothing(answer)
    try:
        return answer.row()
    except ForgeError as error:
        raise WriteUncertain(
            f"{answer.what} may have been written to GitLab or not: its answer cannot be read. Look whether it is "
            "there before writing it again."
        ) from error


def _noted(answer: Answer) -> Row:
    note = _kept(answer)
    if not whole(note.get("id")):
        raise _nothing(answer)
    return note


def _nothing(answer: Answer) -> ForgeRefused:
    return ForgeRefused(
        f"{answer.what} was not kept: GitLab took all of it for quick actions, or answered without an id. Look at the "
        "merge request, and report this: no text should get there."
    )


def _holding(rows: list[Row], note_id: int) -> str:
    """The thread with that note."""
    for row in rows:
        notes = row.get("notes")
        listed = notes if isinstance(notes, list) else []
        if any(isinstance(note, dict) and note.get("id") == note_id for note in listed):
            return text(row.get("id"))
    return ""
