"""Read GitLab's API responses (JSON, paging headers, error text), and build the errors for failed requests.

No field of a response is taken for granted: a value of the wrong type becomes an error or an empty value. Error
sentences are written for whoever operates the service. Nothing here sends a request. The second half parses merge
requests, checks, diffs, threads and reactions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import httpx2

from hummingbird.core.diffs import CommitComparison, FileDiff
from hummingbird.core.errors import (
    CredentialRefused,
    GitLabNotFound,
    GitLabRateLimited,
    GitLabRequestRefused,
    GitLabUnavailable,
    GitLabWriteError,
    GitLabWriteUncertain,
    HummingbirdError,
)
from hummingbird.core.findings import is_dismissal
from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.limits import FORGE_SAID_CHARS
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.votes import EmojiReaction
from hummingbird.gitlab.http_client import GitLabRequest, JsonObject
from hummingbird.gitlab.webhook_events import MergeRequestState
from hummingbird.gitlab.write.protocol import (
    CommitCheck,
    MergeRequestDetails,
    MergeRequestThread,
    NoteKind,
    NoteMarkers,
    PendingNote,
    ThreadNote,
    text_digest,
)


@dataclass(frozen=True, slots=True)
class GitLabResponse:
    """A response of GitLab's API; `what` names what was asked for and begins error sentences."""

    what: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json_object(self) -> JsonObject:
        """Return the body as an object.

        Raises GitLabRequestRefused if it is not an object, GitLabUnavailable if it is not JSON.
        """
        found = self._parse_json()
        if not isinstance(found, dict):
            raise self._shape_error()
        return found

    def json_objects(self) -> list[JsonObject]:
        """Return the objects of a list, without any other values in it.

        Raises GitLabRequestRefused if the body is not a list, GitLabUnavailable if it is not JSON.
        """
        found = self._parse_json()
        if not isinstance(found, list):
            raise self._shape_error()
        return [each for each in found if isinstance(each, dict)]

    def next_page(self, page: int) -> int:
        """Return the number of the next page, 0 at the end.

        Only the page number of a link is used: its host is the server's own idea of its address.
        """
        following = self.headers.get("X-Next-Page", "").strip() or self._page_from_link("next")
        number = positive_int(following)
        return number if number > page else 0

    @property
    def last_page(self) -> int:
        """Return the number of the last page; 0 if GitLab does not say, as for long lists."""
        return positive_int(self.headers.get("X-Total-Pages", "").strip())

    @property
    def error_text(self) -> str:
        """Return GitLab's error message on one printable line; empty if there is none.

        GitLab uses `message` or `error` with `error_description`, each as text, list or object.
        """
        try:
            found = self._parse_json()
        except GitLabUnavailable:
            return ""
        raw = found if isinstance(found, dict) else {}
        parts = [_flatten_message(raw[name]) for name in ("message", "error", "error_description") if raw.get(name)]
        text = "".join(each if each.isprintable() else " " for each in replace_surrogates(" – ".join(parts)))
        return shorten_line(text, FORGE_SAID_CHARS)

    def _parse_json(self) -> object:
        try:
            return decode_lenient_json(self.body)
        except InvalidJson:
            raise GitLabUnavailable(
                f"{self.what} came as something else than JSON: something before GitLab may have answered in its "
                "place. It is tried again later."
            ) from None

    def _shape_error(self) -> GitLabRequestRefused:
        return GitLabRequestRefused(
            f"{self.what} came as something else than what GitLab's API promises: check that the configured address is "
            "that of a GitLab."
        )

    def _page_from_link(self, name: str) -> str:
        try:
            links = httpx2.Response(200, headers={"Link": self.headers.get("Link", "")}).links
            return parse_qs(urlsplit(links.get(name, {}).get("url", "")).query).get("page", [""])[0]
        except ValueError:
            return ""


def _flatten_message(value: object) -> str:
    """Turn a message into one line; GitLab sends a sentence, a list, or sentences for each field."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_flatten_message(each)}" for name, each in value.items())
    return ", ".join(_flatten_message(each) for each in value) if isinstance(value, list) else str(value)


def positive_int(value: object) -> int:
    """Return a positive integer, also one written as text; 0 for everything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def text_or_empty(value: object) -> str:
    """Return the text without lone surrogates; empty for everything that is not text."""
    return replace_surrogates(value) if isinstance(value, str) else ""


def object_or_empty(raw: JsonObject, name: str) -> JsonObject:
    """Return the object in that field; an empty one if there is none."""
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def unreachable_error(asked: GitLabRequest, why: str) -> GitLabUnavailable:
    """Return the error for a request that GitLab did not process."""
    return GitLabUnavailable(
        f"{asked.what} could not be {_action_phrase(asked)} GitLab: {why}. It is tried again later."
    )


def busy_error(asked: GitLabRequest) -> GitLabRateLimited:
    """Return the error for a request that GitLab's rate limit rejected."""
    limit = "it limits how often it may be asked"
    return GitLabRateLimited(
        f"{asked.what} could not be {_action_phrase(asked)} GitLab: {limit}. It is tried again later."
    )


def uncertain_error(asked: GitLabRequest, why: str) -> GitLabWriteError:
    """Return the error for a request whose outcome is unknown; only for a write does that matter."""
    if not asked.is_write:
        return unreachable_error(asked, why)
    return GitLabWriteUncertain(
        f"{asked.what} may have been written to GitLab or not: {why}. Look whether it is there before writing it again."
    )


def certificate_error(asked: GitLabRequest) -> GitLabUnavailable:
    """Return the error for a certificate that is not trusted."""
    return unreachable_error(asked, "its certificate is not trusted; set ca_bundle to your authority's certificates")


def invalid_address_error(reason: str) -> GitLabRequestRefused:
    """Return the error for a configured address that is not a URL."""
    return GitLabRequestRefused(
        f"The configured address of GitLab is not a URL ({reason}): write it like https://gitlab.example."
    )


def refusal_error(asked: GitLabRequest, answer: GitLabResponse, project: str) -> HummingbirdError:
    """Return the error for a response with a status from 300 to 499."""
    quoted = f" (GitLab said: {answer.error_text})" if answer.error_text else ""
    if answer.status == 401:
        return CredentialRefused(
            f"GitLab does not take the token that writes to {project}: it is wrong, expired or revoked. Make a new one "
            "and put it into the orchestrator token's variable."
        )
    if answer.status == 403 and "insufficient_scope" in answer.error_text:
        return CredentialRefused(
            f"The token that writes to {project} lacks the scope api: make one that has it and put it into the "
            "orchestrator token's variable."
        )
    if answer.status == 404:
        return GitLabNotFound(f"{asked.what} was not found: it does not exist, or the bot may not see it{quoted}.")
    if answer.status < 400:
        return GitLabRequestRefused(
            f"{asked.what} is said to be elsewhere, and the token is not taken there: check the configured address of "
            f"GitLab, and whether {project} was moved."
        )
    advice = "check the bot's role in the project" if answer.status == 403 else "it would be refused again"
    return GitLabRequestRefused(f"{asked.what} was refused with status {answer.status}{quoted}: {advice}.")


def _action_phrase(asked: GitLabRequest) -> str:
    return "written to" if asked.is_write else "read from"


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
