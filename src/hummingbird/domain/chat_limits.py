"""The bounds of conversations (C1–C11, L20), each with its unit. Beside `limits`, by the same rules."""

# Making room in a full context (L20)
LEAST_SAVED = 0.1  # share of the context that a compaction has to save, or nothing is dropped
GROWN = 1.1  # times as full as when making room was in vain, before it is tried again
SUMMARY_PROSE_CHARS = 8_000  # of what the side task's model wrote
SUMMARY_ASKS_CHARS = 12_000  # of what the user asked, word for word
SUMMARY_LISTED_CHARS = 24_000  # of the list of all of them; older ones are told by their numbers
SUMMARY_ASK_CHARS = 2_000  # of one of them that is not worked on any more; the rest is in the journal
SUMMARY_ANSWERS = 60  # the last ones, of which it is told how they begin
SUMMARY_NAMES_CHARS = 3_000
SUMMARY_OUTPUT_TOKENS = 4_096
SUMMARISED_RESULT_CHARS = 1_600  # of one tool result that the summariser reads
SUMMARISED_TEXT_CHARS = 6_000  # of one thing that a person or the model said
SUMMARISED_SHARE = 0.6  # of the side task's window that is filled

# C4: that a message waits for a session which somebody else has just spoken in and is storing, and how often it looks
STORING_S = 1.0
STORING_LOOK_S = 0.05

# How long the prompt waits (L19) for work that was interrupted before it is left to end by itself
PROMPT_GRACE_S = 0.15
PATIENCE_S = 1.0  # that somebody waits without being told for what

PROGRESS_CHARS = 200  # of a line in which a running tool says how far it is

# What sub-agents may take and tell (C8)
TASKS = 8  # of one call; as many at once as the configuration says
DELEGATED_S = 600.0
DELEGATED_S_CAP = 3_600.0
FINDINGS_CHARS = 8_000
ARTEFACTS = 50  # paths that are looked for
DELEGATED_BYTES = 4_096  # of one text of a sub-agent's call that the parent's journal keeps
