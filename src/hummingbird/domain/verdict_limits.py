"""The bounds of what is looked at before a model speaks, and of what is said of it (N8). Beside `limits`, by the same
rules."""

# what is gathered for a verdict
LOOK_S = 180.0  # the whole look; what is not there by then was not seen
LOOK_LOGS = 6  # of failed jobs that are read; the others are judged by what GitLab says of them
LOOK_JOBS = 30  # failed jobs that are judged
LOOK_LOG_BYTES = 1024**3  # of one log; one that is longer was not seen, for its end tells most
LOOK_LIST_BYTES = 32 * 1024 * 1024  # of one list
LOOK_ITEMS = 5_000  # of one list
LOOK_TARGET_PIPELINES = 3  # newest finished ones of the target branch
LOOK_TARGET_LISTED = 20  # pipelines among which those are looked for
LOOK_FINGERPRINTS = 5  # of one job
LOOK_TEXT_CHARS = 64 * 1024  # of a failure's lines in which file names are looked for
LOOK_PATHS = 20_000  # changed files

# what is said of it
VERDICT_JOBS_TOLD = 5
VERDICT_REASONS_TOLD = 4  # of one job
VERDICT_UNSEEN_TOLD = 4
VERDICT_NAME_CHARS = 160

# one failure, many merge requests
KNOWN_ANALYSIS_S = 14 * 86_400.0  # that an analysis stands for those of other merge requests
