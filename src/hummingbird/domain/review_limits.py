"""Bounds of following findings through pushes (W2), by topic. Each has its relation to others checked by a test."""

# where a line stands in another commit
MOVE_WALK_LINES = 40  # above and below a line, that may agree with those around the place that it may have moved to
MOVE_AROUND_LINES = 12  # in which order does not matter
MOVE_CANDIDATES = 64  # places with the same text; of a line that stands more often nobody can tell which one it became
MOVE_MARGIN = 2  # by which the best place has to be better than the next

# what the forge is asked
REVIEW_COMPARISONS = 12  # commits that the findings of a merge request were made at; older ones are known by their text
REVIEW_CHANGED_TOLD = 60  # files that changed since the last review; of more the model is not told

# patches, above which a forge may have left something out
PATCH_FILES = 1_000
PATCH_LINES = 50_000

# what the note says
REVIEW_LINKS = 5  # threads that are linked to, of each state
