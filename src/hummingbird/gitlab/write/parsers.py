"""Parse GitLab's JSON into merge requests, checks, diffs, threads and reactions.

A field that is missing or has the wrong type becomes an empty value.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from hummingbird.core.diffs import CommitComparison, FileDiff
from hummingbird.core.errors import GitLabRequestRefused
from hummingbird.core.findings import is_dismissal
from hummingbird.core.votes import EmojiReaction
from hummingbird.gitlab.http_client import JsonObject
from hummingbird.gitlab.webhook_events import MergeRequestState
from hummingbird.gitlab.write.api_response import (
    GitLabResponse,
    object_or_empty,
    positive_int,
    text_or_empty,
)
from hummingbird.gitlab.write.note_markers import NoteMarkers
from hummingbird.gitlab.write.protocol import (
    CommitCheck,
    MergeRequestDetails,
    MergeRequestThread,
    NoteKind,
    PendingNote,
    ThreadNote,
    text_digest,
)


def parse_merge_request(answer: GitLabResponse, iid: int, project: str) -> MergeRequestDetails:
    """Parse a merge request. Raises GitLabRequestRefused if the response is not that merge request."""
    raw = answer.json_object()
    if positive_int(raw.get("iid")) != iid:
        raise GitLabRequestRefused(
            f"GitLab returned something else instead of merge request {iid} of {project}: try again."
        )
    author, refs, head = (
        object_or_empty(raw, "author"),
        object_or_empty(raw, "diff_refs"),
        text_or_empty(raw.get("sha")),
    )
    newest = object_or_empty(raw, "head_pipeline")
    # While GitLab prepares a new head, diff_refs may still describe the old diff.
    current = bool(head) and text_or_empty(refs.get("head_sha")) == head
    return MergeRequestDetails(
        change=_parse_change(raw, head, positive_int(author.get("id"))),
        project=project,
        author=text_or_empty(author.get("username")),
        title=text_or_empty(raw.get("title")),
        url=text_or_empty(raw.get("web_url")),
        head_pipeline_id=positive_int(newest.get("id")),
        in_train=text_or_empty(newest.get("ref")).endswith("/train"),
        base_sha=text_or_empty(refs.get("base_sha")) if current else "",
        start_sha=text_or_empty(refs.get("start_sha")) if current else "",
    )


def _parse_change(raw: JsonObject, head: str, author_id: int) -> MergeRequestState:
    return MergeRequestState(
        iid=positive_int(raw.get("iid")),
        head=head,
        source_branch=text_or_empty(raw.get("source_branch")),
        target_branch=text_or_empty(raw.get("target_branch")),
        draft=raw.get("draft") is True or raw.get("work_in_progress") is True,
        state=text_or_empty(raw.get("state")),
        author_id=author_id,
    )


def parse_checks(rows: Iterable[JsonObject]) -> list[CommitCheck]:
    """Return the newest check of each name; jobs and statuses take their ids from the same sequence."""
    newest: dict[str, JsonObject] = {}
    for row in rows:
        name = text_or_empty(row.get("name"))
        if name and positive_int(row.get("id")) >= positive_int(newest.get(name, {}).get("id")):
            newest[name] = row
    return [_parse_check(name, row) for name, row in newest.items()]


def _parse_check(name: str, row: JsonObject) -> CommitCheck:
    """Parse a commit status or a job, which name their pipeline and URL differently."""
    times = (parse_time(row.get(each)) for each in ("created_at", "started_at", "finished_at"))
    return CommitCheck(
        name=name,
        status=text_or_empty(row.get("status")),
        changed_at=max(times),
        url=text_or_empty(row.get("target_url")) or text_or_empty(row.get("web_url")),
        pipeline_id=positive_int(row.get("pipeline_id")) or positive_int(object_or_empty(row, "pipeline").get("id")),
        allow_failure=row.get("allow_failure") is True,
    )


def parse_file_diff(row: JsonObject) -> FileDiff:
    """Parse the diff of one file."""
    modes = (text_or_empty(row.get("a_mode")), text_or_empty(row.get("b_mode")))
    return FileDiff(
        old_path=text_or_empty(row.get("old_path")),
        new_path=text_or_empty(row.get("new_path")),
        text=text_or_empty(row.get("diff")),
        hidden=_is_text_hidden(row),
        is_new=row.get("new_file") is True,
        modes="→".join(modes) if modes[0] != modes[1] else "",
    )


def _is_text_hidden(row: JsonObject) -> bool:
    """Return whether the file's content changed although GitLab gives no text.

    An empty text means no change only if the file was just renamed or got another mode. GitLab marks large files with
    `too_large` or `collapsed`; old servers lack these fields, and binary files are never marked.
    """
    if text_or_empty(row.get("diff")):
        return False
    if row.get("too_large") is not False or row.get("collapsed") is not False:
        return True
    return row.get("renamed_file") is not True and text_or_empty(row.get("a_mode")) == text_or_empty(row.get("b_mode"))


def parse_comparison(row: JsonObject) -> CommitComparison:
    """Parse a comparison of two commits. Raises GitLabRequestRefused if the response is not one."""
    listed = row.get("diffs")
    if not isinstance(listed, list):
        raise GitLabRequestRefused("GitLab returned something else instead of a comparison of two commits: try again.")
    files = [parse_file_diff(each) for each in listed if isinstance(each, dict)]
    named = tuple(file for file in files if file.old_path and file.new_path)
    return CommitComparison(named, is_complete=row.get("compare_timeout") is not True and len(named) == len(listed))


def parse_reaction(row: JsonObject) -> EmojiReaction:
    """Parse an emoji reaction."""
    return EmojiReaction(text_or_empty(row.get("name")), positive_int(object_or_empty(row, "user").get("id")))


def parse_time(value: object) -> float:
    """Return seconds since the epoch; 0 for text that is not a time.

    Accepts ISO 8601 and the format of webhooks: `2025-08-05 21:48:27 UTC`.
    """
    written = text_or_empty(value).strip()
    if written.endswith(" UTC"):
        written = written.removesuffix(" UTC") + "+00:00"
    try:
        found = datetime.fromisoformat(written)
        return max(0.0, (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return 0.0


def parse_thread(raw: JsonObject, bot_ids: frozenset[int], markers: NoteMarkers) -> MergeRequestThread | None:
    """Parse a discussion; return None if it holds only system notes.

    System notes are left out, also those under the bot's name: they repeat titles and branch names, which anybody can
    choose. Markers count only in the bot's own notes.
    """
    name, listed = text_or_empty(raw.get("id")), raw.get("notes")
    rows = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    written = [each for each in rows if each.get("system") is not True and positive_int(each.get("id"))]
    if not name or not written:
        return None
    resolvable = [each for each in written if each.get("resolvable") is True]
    resolved = bool(resolvable) and all(each.get("resolved") is True for each in resolvable)
    last = max(resolvable, key=lambda each: parse_time(each.get("resolved_at"))) if resolved else {}
    return MergeRequestThread(
        id=name,
        notes=tuple(_parse_note(each, bot_ids, markers) for each in written),
        individual=raw.get("individual_note") is True,
        resolved=resolved,
        resolved_by_bot=positive_int(object_or_empty(last, "resolved_by").get("id")) in bot_ids,
        resolved_at=parse_time(last.get("resolved_at")),
    )


def find_dismissing_users(thread: MergeRequestThread) -> frozenset[int]:
    """Return who wrote in a finding's thread that nothing will be done about it.

    The caller must check whether these users are developers.
    """
    ours = any(note.marker is not None and note.marker.part is NoteKind.FINDING for note in thread.notes)
    return frozenset(note.author_id for note in thread.notes if note.is_dismissal and ours)


def parse_draft_note(raw: JsonObject, markers: NoteMarkers) -> PendingNote:
    """Parse a draft note. Its marker is trusted, because GitLab shows the bot only its own draft notes."""
    return PendingNote(id=positive_int(raw.get("id")), marker=markers.parse_marker(text_or_empty(raw.get("note"))))


def is_internal(note: JsonObject) -> bool:
    """Return whether the note is internal; old servers call it `confidential`."""
    return note.get("internal") is True or note.get("confidential") is True


def _parse_note(raw: JsonObject, bot_ids: frozenset[int], markers: NoteMarkers) -> ThreadNote:
    author = positive_int(object_or_empty(raw, "author").get("id"))
    written = text_or_empty(raw.get("body"))
    body = written if author in bot_ids else ""
    place = object_or_empty(raw, "position")
    return ThreadNote(
        id=positive_int(raw.get("id")),
        author_id=author,
        by_bot=author in bot_ids,
        internal=is_internal(raw),
        text_digest=text_digest(written),
        is_dismissal=author not in bot_ids and is_dismissal(written),
        marker=markers.parse_marker(body),
        answers=markers.parse_answer_target(body),
        path=text_or_empty(place.get("new_path")) or text_or_empty(place.get("old_path")),
        line=positive_int(place.get("new_line")) or positive_int(place.get("old_line")),
        old_path=text_or_empty(place.get("old_path")),
        old=(old := not positive_int(place.get("new_line")) and bool(positive_int(place.get("old_line")))),
        at=text_or_empty(place.get("base_sha" if old else "head_sha")),
        made_at=parse_time(raw.get("created_at")),
    )
