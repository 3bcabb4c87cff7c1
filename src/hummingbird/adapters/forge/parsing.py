"""Merge requests, checks, files and times as GitLab tells them, as nouns of ours. Pure; what is missing is empty."""

from collections.abc import Iterable
from datetime import UTC, datetime

from hummingbird.adapters.forge.answers import Answer, Row, inner, text, whole
from hummingbird.domain.diffs import Comparison, FileDiff
from hummingbird.domain.errors import ForgeRefused
from hummingbird.domain.incoming import Change
from hummingbird.domain.votes import Reaction
from hummingbird.ports.forge import Check, MergeRequest


def merge_request_of(answer: Answer, iid: int, project: str) -> MergeRequest:
    """Raises ForgeRefused: it is another one, or none."""
    raw = answer.row()
    if whole(raw.get("iid")) != iid:
        raise ForgeRefused(f"Instead of merge request {iid} of {project}, GitLab told something else: ask it again.")
    author, refs, head = inner(raw, "author"), inner(raw, "diff_refs"), text(raw.get("sha"))
    newest = inner(raw, "head_pipeline")
    # shas of an older diff do not go with a newer head
    current = bool(head) and text(refs.get("head_sha")) == head
    return MergeRequest(
        change=_change(raw, head, whole(author.get("id"))),
        project=project,
        author=text(author.get("username")),
        title=text(raw.get("title")),
        url=text(raw.get("web_url")),
        head_pipeline_id=whole(newest.get("id")),
        in_train=text(newest.get("ref")).endswith("/train"),
        base_sha=text(refs.get("base_sha")) if current else "",
        start_sha=text(refs.get("start_sha")) if current else "",
    )


def _change(raw: Row, head: str, author_id: int) -> Change:
    return Change(
        iid=whole(raw.get("iid")),
        head=head,
        source_branch=text(raw.get("source_branch")),
        target_branch=text(raw.get("target_branch")),
        draft=raw.get("draft") is True or raw.get("work_in_progress") is True,
        state=text(raw.get("state")),
        author_id=author_id,
    )


def checks_of(rows: Iterable[Row]) -> list[Check]:
    """The newest of each name, for every one of them has an id from the same sequence."""
    newest: dict[str, Row] = {}
    for row in rows:
        name = text(row.get("name"))
        if name and whole(row.get("id")) >= whole(newest.get(name, {}).get("id")):
            newest[name] = row
    return [_check(name, row) for name, row in newest.items()]


def _check(name: str, row: Row) -> Check:
    """A status names its pipeline and target, a job holds them in other places."""
    times = (moment(row.get(each)) for each in ("created_at", "started_at", "finished_at"))
    return Check(
        name=name,
        status=text(row.get("status")),
        changed_at=max(times),
        url=text(row.get("target_url")) or text(row.get("web_url")),
        pipeline_id=whole(row.get("pipeline_id")) or whole(inner(row, "pipeline").get("id")),
        allow_failure=row.get("allow_failure") is True,
    )


def file_diff_of(row: Row) -> FileDiff:
    modes = (text(row.get("a_mode")), text(row.get("b_mode")))
    return FileDiff(
        old_path=text(row.get("old_path")),
        new_path=text(row.get("new_path")),
        text=text(row.get("diff")),
        hidden=_hidden(row),
        born=row.get("new_file") is True,
        modes="→".join(modes) if modes[0] != modes[1] else "",
    )


def _hidden(row: Row) -> bool:
    """No text is no change where a file was only renamed or given another mode; GitLab says so of large files since it
    knows these words, and of others that are no text never (facts 2.2)."""
    if text(row.get("diff")):
        return False
    if row.get("too_large") is not False or row.get("collapsed") is not False:
        return True
    return row.get("renamed_file") is not True and text(row.get("a_mode")) == text(row.get("b_mode"))


def comparison_of(row: Row) -> Comparison:
    """Raises ForgeRefused: it is none."""
    listed = row.get("diffs")
    if not isinstance(listed, list):
        raise ForgeRefused("Instead of a comparison of two commits, GitLab told something else: ask it again.")
    files = [file_diff_of(each) for each in listed if isinstance(each, dict)]
    named = tuple(file for file in files if file.old_path and file.new_path)
    return Comparison(named, whole=row.get("compare_timeout") is not True and len(named) == len(listed))


def reaction_of(row: Row) -> Reaction:
    return Reaction(text(row.get("name")), whole(inner(row, "user").get("id")))


def moment(value: object) -> float:
    """Seconds since the epoch of ISO 8601, or of what hooks write: 2025-08-05 21:48:27 UTC. 0 for all else."""
    written = text(value).strip()
    if written.endswith(" UTC"):
        written = written.removesuffix(" UTC") + "+00:00"
    try:
        found = datetime.fromisoformat(written)
        return max(0.0, (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return 0.0
