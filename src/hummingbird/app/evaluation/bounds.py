"""Limits of `hummingbird eval`."""

EVAL_JOBS = 16  # runs at once; each has a GitLab of its own on this machine, and a sandbox
EVAL_REPEATS = 100
EVAL_CASES = 1_000
CASE_BYTES = 1024 * 1024  # of a case.json
CASE_LINES = 200  # of evidence, findings or forbidden words that one case expects
RECORDING_BYTES = 64 * 1024 * 1024
FAILED_CHARS = 300  # of the sentence why a case could not be run, in a table
