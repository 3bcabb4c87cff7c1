"""What bounds `hummingbird eval`. The relations between these are checked by a test."""

EVAL_JOBS = 16  # runs at once; each has a GitLab of its own on this machine, and a sandbox
EVAL_REPEATS = 100
EVAL_CASES = 1_000
CASE_BYTES = 1024 * 1024  # of a case.json
CASE_LINES = 200  # of evidence, findings or forbidden words that one case expects
RECORDING_BYTES = 64 * 1024 * 1024
CLAIMS = 2_000  # of one answer that are looked for in what was fetched
CLAIMS_TOLD = 20  # by name, of those that stand in nothing that was fetched
CLAIM_LEAST_CHARS = 4  # of a line that is worth being looked for: braces are everywhere
CLAIM_WITHIN_CHARS = 24  # of a line that may be part of another one; shorter ones must be a whole line
FAILED_CHARS = 300  # of the sentence why a case could not be run, in a table
