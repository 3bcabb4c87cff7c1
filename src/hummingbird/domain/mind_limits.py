"""The bounds of what the agent keeps in mind (C5, C7, C9), each with its unit. Beside `limits`, by the same rules."""

# C7, the list of what is to be done
TODOS = 256  # kept; when there are more, those that ended first are forgotten
TODO_CHARS = 500  # of one
TODOS_SHOWN_CHARS = 4_000  # of the list that a call returns
TODO_CUT_CHARS = 80  # of one in a list that is too long

# C7, memory; how long its two files may be stands in `limits`
PAPER_BYTES = 64 * 1024  # of a file of ours or a person's that is read; a longer memory is not written either
MEMORY_ENTRY_CHARS = 1_000
MEMORY_QUOTED_CHARS = 80  # of an entry that an error names
MEMORY_QUOTED = 5  # entries that an error names
MEMORY_COPIES = 100  # of a file that could not be read fully, before somebody has to tidy up

# C7, looking back
RECALL_SESSIONS = 5
RECALL_PER_SESSION = 2  # snippets
RECALL_HERE = 5  # places in the session itself
RECALL_SNIPPET_CHARS = 240
RECALL_WORDS = 16  # of a query
RECALL_AROUND = 5  # messages before and after, unless told
RECALL_AROUND_CAP = 20
RECALL_TEXT_CHARS = 3_000  # of the message that was asked for, at once
RECALL_BESIDE_CHARS = 400  # of each one around it
RECALL_BYTES = 10_000  # of one answer
RECALL_INDEX_S = 10.0  # for the index to answer, before the session itself is searched without it

# C5, questions to the user
CHOICES = 4
CHOICE_CHARS = 200
QUESTION_CHARS = 2_000

# C9: skills and context files
SKILLS = 64
SKILL_BYTES = 16 * 1024
SKILL_NAME_CHARS = 64
SKILL_FRONT_CHARS = 2_000
SKILL_FRONT_LISTS = 64  # in it; a thousand inside each other keep a YAML parser busy for a second
SKILL_LINE_CHARS = 160  # of a description in the index
SKILL_INDEX_CHARS = 4_000
SKILL_FILES = 32  # beside SKILL.md that are named
SKILL_LOOKED_AT = 512  # entries of a folder that are looked at
CONTEXT_FILE_BYTES = 8 * 1024
CONTEXT_FILES_BYTES = 16 * 1024  # together
CONTEXT_DEPTH = 32  # directories above the start
PERSONALITY_CHARS = 2_000
