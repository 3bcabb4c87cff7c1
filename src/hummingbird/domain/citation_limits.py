"""What bounds the check of an answer against what was fetched (N6). Their relations are checked by a test."""

CITED_CHARS = 64 * 1024  # of an answer that is checked; a longer one is posted with a sentence that says so
CITED_ROUNDS = 4  # of looks at an answer, each at what the last one has left
QUOTED_LINES = 2_000  # of all answers that are checked together
MENTIONS = 500  # of places, jobs and addresses in one answer
RECORD_CHARS = 32 * 1024 * 1024  # of results that are looked through, the newest first
RECORD_ADDRESSES = 50_000
LEAST_CHARS = 4  # of a line that is worth being looked for: braces are everywhere
CUT_CHARS = 12  # that are shown of a line which is cut, at least
TAIL_CHARS = 20  # of a line that is quoted without its beginning, at least
CITED_LINE_CHARS = 8_000  # of one line that is looked for

DIGESTED_LINES = 4_000_000  # of everything that streams by in one run: 8 bytes each
DIGESTED_LINE_BYTES = 64 * 1024  # of one line; a longer one is not known again

COVERED_NAMES = 5  # jobs, files and tools that a footer names
