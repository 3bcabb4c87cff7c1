"""Labelled logs as a learner sees them: the rows that the product itself makes of a log, and which of them a person
marked. Knows nothing of weights."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.evidence.labels import Label
from benchmarks.evidence.scoring import ENOUGH, WHOLE_BELOW, lines_of, plain
from hummingbird.evidence.logs.line_scores import LineFeatures, build_features, is_frame
from hummingbird.evidence.logs.log_reader import CandidateLines, LogReader

CALM_SHARE = 3.0  # what a log's unmarked rows count for together; its marked ones count for one


@dataclass(frozen=True, slots=True)
class Example:
    label: Label
    kept: CandidateLines
    rows: LineFeatures
    marked: list[bool]  # one per row


def example(label: Label) -> Example:
    reader = LogReader()
    reader.feed(label.text().encode("utf-8", "replace"))
    kept = reader.finish()
    rows = build_features(kept)
    return Example(label, kept, rows, marked(rows.texts, label.lines))


def marked(texts: Sequence[str], lines: Sequence[str]) -> list[bool]:
    """Whole lines; where none is, rows that hold a long label line, as some labels leave out a tool's prefix."""
    wanted = set(lines)
    whole = [any(plain(piece) in wanted for piece in lines_of(text)) for text in texts]
    if any(whole):
        return whole
    parts = [line[:ENOUGH] for line in lines if len(line) >= WHOLE_BELOW]
    return [any(part in plain(text) for part in parts) for text in texts]


def shares(one: Example) -> list[float]:
    """How much each row counts, so that every log counts the same however long it or its label is.

    Frames of a stack trace count for nothing: they get their worth from the error they belong to (`standing`), and
    labels hold so many of them that the weights would learn traces instead of errors.
    """
    frames = [is_frame(mark, text) for mark, text in zip(one.rows.marks, one.rows.bodies, strict=True)]
    wanted = [row and not frame for row, frame in zip(one.marked, frames, strict=True)]
    if not any(wanted):  # nothing but frames was marked
        wanted = one.marked
    calm = [not row and not frame for row, frame in zip(one.marked, frames, strict=True)]
    of_wanted, of_calm = 1 / max(1, sum(wanted)), CALM_SHARE / max(1, sum(calm))
    return [of_wanted * want + of_calm * other for want, other in zip(wanted, calm, strict=True)]
