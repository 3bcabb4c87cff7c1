"""Where in a diff a note stands: checking what was sent, keeping it as GitLab does (facts 2.4).

Works on a merge request's current diff alone; GitLab also accepts older versions of it.
"""

from hummingbird.lab.gitlab import refusals
from hummingbird.lab.gitlab.diffs import HUNK
from hummingbird.lab.gitlab.records import FileDiff, MergeRequest, Raw
from hummingbird.lab.gitlab.writing.parameters import whole

SHAS = ("base_sha", "start_sha", "head_sha")
WRONG_LINE = """Note {:line_code=>["can't be blank", "must be a valid line code"]}"""


def placed(mr: MergeRequest, given: Raw) -> Raw:
    """The position as it is kept. Raises Refused: 400."""
    found = taken(given)
    if not fits(mr, found):
        raise refusals.bad_request(WRONG_LINE)
    return found


def taken(given: Raw) -> Raw:
    """The position as it is kept, wherever it is. Raises Refused: 400 for what is none."""
    missing = [f"position[{name}]" for name in (*SHAS, "position_type") if not given.get(name)]
    if missing:
        raise refusals.Refused(400, {"error": ", ".join(f"{name} is missing" for name in missing)})
    if given["position_type"] not in ("text", "image", "file"):
        raise refusals.invalid("position[position_type]", "does not have a valid value")
    return _kept(given)


def fits(mr: MergeRequest, found: Raw) -> bool:
    """Whether there is such a line in the diff as it is now."""
    return tuple(found[name] for name in SHAS) == (mr.base_sha, mr.start_sha, mr.sha) and _fits(mr, found)


def _kept(given: Raw) -> Raw:
    old, new = given.get("old_path"), given.get("new_path")
    found = {
        **{name: str(given[name]) for name in SHAS},
        "old_path": old or new,
        "new_path": new or old,
        "position_type": given["position_type"],
    }
    if given["position_type"] == "text":
        for name in ("old_line", "new_line"):
            found[name] = whole(given.get(name), f"position[{name}]")
        found["line_range"] = given.get("line_range")
    return found


def _fits(mr: MergeRequest, found: Raw) -> bool:
    paths = (found["old_path"], found["new_path"])
    file = next((each for each in mr.files if (each.old_path, each.new_path) == paths), None)
    if file is None:
        return False
    if found["position_type"] != "text":
        return True
    return (found["old_line"], found["new_line"]) in lines_of(file)


def lines_of(file: FileDiff) -> set[tuple[int | None, int | None]]:
    """What can be named: an added line by its new number, a removed one by its old, an unchanged one by both."""
    found: set[tuple[int | None, int | None]] = set()
    old = new = 0
    for line in file.diff.split("\n"):
        if hunk := HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[3])
        elif line.startswith("+"):
            found.add((None, new))
            new += 1
        elif line.startswith("-"):
            found.add((old, None))
            old += 1
        elif line.startswith(" "):
            found.add((old, new))
            old, new = old + 1, new + 1
    return found
