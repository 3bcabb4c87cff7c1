"""What a system note says, without what it quotes (D3): titles, commit subjects and branch names are outsiders' words.

Recognised by the fixed phrases that GitLab begins such notes with. Pure.
"""

import re

OTHER = "other"
_KINDS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"added \d+ (?:new )?commits?\b", "added commits"),
        (r"changed (?:the )?title\b", "changed title"),
        (r"changed the description\b", "changed description"),
        (r"changed (?:the )?target branch\b", "changed target branch"),
        (r"changed this line in\b", "changed line"),
        (r"changed (?:the )?milestone\b|removed (?:the )?milestone\b", "changed milestone"),
        (r"mentioned in\b", "mentioned"),
        (r"approved this merge request\b", "approved"),
        (r"(?:unapproved|removed approval|revoked approval|reset approvals?)\b", "unapproved"),
        (r"requested changes\b", "requested changes"),
        (r"(?:requested review from|removed review request for)\b", "requested review"),
        (r"(?:un)?assigned\b|changed assignees?\b|removed assignee\b", "assigned"),
        (r"(?:un)?marked (?:this merge request )?as (?:a )?\W{0,2}(?:draft|work in progress|wip)\b", "marked as draft"),
        (r"marked (?:this merge request )?as \W{0,2}ready\b", "marked as ready"),
        (r"resolved all threads\b", "resolved all threads"),
        (r"(?:added|removed)\b.{0,2000}\blabels?\b", "changed labels"),
        (r"enabled an automatic merge\b|enabled automatic\b", "enabled automatic merge"),
        (r"(?:aborted|canceled|cancelled) (?:the )?automatic\b", "cancelled automatic merge"),
        (r"(?:started a|added this merge request to the) merge train\b", "joined merge train"),
        (r"removed this merge request from the merge train\b", "left merge train"),
        (r"merged\b", "merged"),
        (r"closed\b", "closed"),
        (r"reopened\b", "reopened"),
        (r"(?:un)?locked\b", "locked or unlocked"),
        (r"(?:deleted|restored|created)\b.{0,20}\bbranch\b", "changed source branch"),
        (r"(?:added|changed|set|removed|deleted|subtracted)\b.{0,80}\b(?:time spent|time estimate)\b", "tracked time"),
    )
)  # fmt: skip


def kind_of(body: str) -> str:
    """One of a fixed set of words; "other" for what GitLab may have learned to say since."""
    body = body.lstrip(" *_")
    return next((kind for pattern, kind in _KINDS if pattern.match(body)), OTHER)
