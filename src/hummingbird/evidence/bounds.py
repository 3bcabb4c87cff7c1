"""Limits of the citation check and of what is gathered for a verdict before a model runs."""

# The check of an answer against what was fetched. A test checks how these limits relate.

CITED_CHARS = 64 * 1024  # of an answer that is checked; a longer one is posted with a sentence that says so
CITED_ROUNDS = 4  # passes over an answer; each one checks what the previous one left
QUOTED_LINES = 2_000  # in all answers that are checked together
MENTIONS = 500  # places, jobs and addresses in one answer
RECORD_CHARS = 32 * 1024 * 1024  # of tool results that are searched, newest first
RECORD_ADDRESSES = 50_000
LEAST_CHARS = 4  # of a line worth searching for: a lone brace is everywhere
CUT_CHARS = 12  # minimum that must be shown of a shortened line
TAIL_CHARS = 20  # minimum of a line that is quoted without its beginning
CITED_LINE_CHARS = 8_000  # of one line that is searched for

DIGESTED_LINES = 4_000_000  # of everything streamed in one run, at 8 bytes each
DIGESTED_LINE_BYTES = 64 * 1024  # of one line; a longer one is not recognised

COVERED_NAMES = 5  # jobs, files and tools that a footer names

# What is gathered for a verdict.
LOOK_S = 180.0  # for all of it; what arrives later does not count
LOOK_LOGS = 6  # logs of failed jobs that are read; other jobs are judged by what GitLab says about them
LOOK_JOBS = 30  # failed jobs that are judged
LOOK_LOG_BYTES = 1024**3  # of one log; a longer one counts as not read, because its end matters most
LOOK_LIST_BYTES = 32 * 1024 * 1024  # of one list
LOOK_ITEMS = 5_000  # of one list
LOOK_TARGET_PIPELINES = 3  # newest finished ones of the target branch
LOOK_TARGET_LISTED = 20  # pipelines that are searched for those
LOOK_REQUESTS = 4  # of Testing Farm, that one log names
LOOK_TEST_LOGS = 2  # of failed tests of one request
LOOK_FINGERPRINTS = 5  # of one job
LOOK_TESTS = 200  # that failed by one job's test report, which are counted
LOOK_ARTIFACT_JOBS = 3  # failed jobs whose artifacts are looked at
LOOK_ARTIFACTS = 2  # files of one kind
LOOK_ARTIFACT_BYTES = 1024 * 1024  # of one file
LOOK_TEXT_CHARS = 64 * 1024  # of a failure's lines that are searched for file names
LOOK_PATHS = 20_000  # changed files
RUN_READINGS = 200  # outputs of a run's tools that its verdict is computed from

# How much of a verdict is shown.
VERDICT_JOBS_TOLD = 5
VERDICT_REASONS_TOLD = 4  # of one job
VERDICT_UNSEEN_TOLD = 4
VERDICT_NAME_CHARS = 160

# How long an analysis is reused for the same failure in other merge requests.
KNOWN_ANALYSIS_S = 14 * 86_400.0
