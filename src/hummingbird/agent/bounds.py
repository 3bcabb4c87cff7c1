"""Limits of the agent, each with its unit; `core.limits` holds those that other packages share."""

# Compaction of a full context
PROTECTED_SHARE = 0.4  # of the ceiling: the most that the end of a conversation may have which is never compacted
PROTECTED_WHEN_ASKED = 4  # the last messages that stay when a person asks for a compaction
LEAST_SAVED = 0.1  # share of the context that a compaction has to save, or nothing is dropped
GROWN = 1.1  # growth of the context since a compaction in vain, before the next try
SUMMARY_PROSE_CHARS = 8_000  # of what the summarizing model wrote
SUMMARY_ASKS_CHARS = 12_000  # of the user's requests, word for word
SUMMARY_LISTED_CHARS = 24_000  # of the list of all requests; older ones are given by their numbers only
SUMMARY_ASK_CHARS = 2_000  # of one request that is settled; the rest is in the journal
SUMMARY_ANSWERS = 60  # the newest answers, whose beginnings are quoted
SUMMARY_NAMES_CHARS = 3_000
SUMMARY_OUTPUT_TOKENS = 4_096
SUMMARISED_RESULT_CHARS = 1_600  # of one tool result that the summarizing model reads
SUMMARISED_TEXT_CHARS = 6_000  # of one message of a person or the model that it reads
SUMMARISED_SHARE = 0.6  # of its context window that is filled

# How long a message waits for a session that another process is storing, and the pause between two looks
STORING_S = 1.0
STORING_LOOK_S = 0.05

PROMPT_GRACE_S = 0.15  # that the prompt waits for interrupted work before it is left to end by itself
PATIENCE_S = 1.0  # that a person waits before being told what for

PROGRESS_CHARS = 200  # of a progress line of a running tool

# Sub-agents
TASKS = 8  # of one call; the configuration says how many run at once
DELEGATED_S = 600.0
DELEGATED_S_CAP = 3_600.0
FINDINGS_CHARS = 8_000
ARTEFACTS = 50  # files that a sub-agent named and whose existence is checked
DELEGATED_BYTES = 4_096  # of one text of a sub-agent's call that the parent's journal keeps

# The todo list
TODOS = 256  # kept; when there are more, those that ended first are dropped
TODO_CHARS = 500  # of one item
TODOS_SHOWN_CHARS = 4_000  # of the list that a call returns
TODO_CUT_CHARS = 80  # of one item in a list that is too long

# Memory; `core.limits` says how long its two files may be
PAPER_BYTES = 64 * 1024  # of a memory or instruction file that is read; a longer memory is not written either
MEMORY_ENTRY_CHARS = 1_000
MEMORY_QUOTED_CHARS = 80  # of an entry that an error names
MEMORY_QUOTED = 5  # entries that an error names
MEMORY_COPIES = 100  # copies of a file that could not be read fully, before a person has to tidy up

# The recall tool
RECALL_SESSIONS = 5
RECALL_PER_SESSION = 2  # snippets
RECALL_HERE = 5  # places in the session itself
RECALL_SNIPPET_CHARS = 240
RECALL_WORDS = 16  # of a query
RECALL_AROUND = 5  # messages before and after, by default
RECALL_AROUND_CAP = 20
RECALL_TEXT_CHARS = 3_000  # of the message that was asked for, at once
RECALL_BESIDE_CHARS = 400  # of each message around it
RECALL_BYTES = 10_000  # of one answer
RECALL_INDEX_S = 10.0  # for the index to answer, before the session itself is searched without it

# Questions to the user
CHOICES = 4
CHOICE_CHARS = 200
QUESTION_CHARS = 2_000

# Skills and context files
SKILLS = 64
SKILL_BYTES = 16 * 1024
SKILL_NAME_CHARS = 64
SKILL_FRONT_CHARS = 2_000
SKILL_FRONT_LISTS = 64  # lists in the front matter; a thousand nested ones keep a YAML parser busy for a second
SKILL_LINE_CHARS = 160  # of a description in the index
SKILL_INDEX_CHARS = 4_000
SKILL_FILES = 32  # beside SKILL.md that are named
SKILL_LOOKED_AT = 512  # entries of a folder that are examined
CONTEXT_FILE_BYTES = 8 * 1024
CONTEXT_FILES_BYTES = 16 * 1024  # together
CONTEXT_DEPTH = 32  # directories above the start
PERSONALITY_CHARS = 2_000
