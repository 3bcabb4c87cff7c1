"""The bounds of what an agent does on an engineer's own machine (C5, C6), each with its unit. Beside `limits`, by the
same rules."""

# C5: files of the workspace
READ_LINES = 2_000  # of one read, unless fewer are asked for
READ_LINE_CHARS = 2_000  # of one line; the rest of it is counted
READ_BYTES = 64 * 1024 * 1024  # of a file that is read line by line
SHOWN_BYTES = 256 * 1024  # of one answer
EDIT_BYTES = 8 * 1024 * 1024  # of a file that is edited, before and after
LISTED_NAMES = 1_000  # of one folder
PATH_CHARS = 4_096
UNDO_CHANGES = 100
UNDO_BYTES = 64 * 1024 * 1024  # of all files as they were before
DIFF_LINES = 400  # that are shown of one change
DIFF_COMPARED_LINES = 2_000  # of either side; comparing takes the square of it, and longer ones are shown as a block

# C5: searching files
SEARCH_S = 10.0  # a pattern may take the time of the universe
SEARCH_MATCHES = 200
SEARCH_MATCHES_PER_FILE = 50  # so that one file does not hide the others
SEARCH_LINE_CHARS = 300
SEARCH_FILE_BYTES = 16 * 1024 * 1024
SEARCH_FILES = 200_000
SEARCH_JUDGED = 500  # files whose names are judged by rules at a time
SEARCH_PATTERN_CHARS = 2_000
SEARCH_MEMORY_BYTES = 1024 * 1024 * 1024
SEARCH_ANSWER_BYTES = 512 * 1024
SEARCH_GIT_S = 5.0  # for git to say which files are its own

# C5: commands of the host
COMMAND_TIMEOUT_S = 180.0
COMMAND_TIMEOUT_CAP_S = 600.0
COMMAND_SLACK_S = 30.0  # how much later than the command's own end the call around it is given up
COMMAND_BYTES = 120 * 1024  # Linux takes 128 KiB in one argument
COMMAND_KEPT_BYTES = 1024 * 1024  # of the output of one in the foreground: its beginning and its end
BACKGROUND_KEPT_BYTES = 200 * 1024
BACKGROUND_RUNNING = 64
BACKGROUND_FINISHED = 32  # that can still be read
BACKGROUND_GLANCE_S = 0.3  # that one which goes to the background is watched, for what fails at once
PROCESS_READ_BYTES = 32 * 1024  # of one read
LEFT_RUNNING_S = 0.2  # for what a command started to end after it, before that is called left running
TERM_GRACE_S = 0.05  # between SIGTERM and SIGKILL: all of it is gone 0.2 s after somebody wants it
ENDING_S = 2.0  # for all of it to be gone before the guardian itself is ended
PROGRESS_S = 0.5  # between two lines of progress
PROGRESS_CHARS = 200
OUTPUT_CHUNK_BYTES = 64 * 1024
OUTPUT_UNHURRIED_BYTES = 8 * 1024 * 1024  # after which output is read at a pace that leaves time for others
OUTPUT_PAUSE_S = 0.005
STANDING_CHARS = 80  # of a command in a line about it

# C6: what is looked through of a command
SHELL_STEPS = 100_000
SHELL_DEPTH = 24  # substitutions within substitutions, commands within the words of commands
SHELL_BRACES = 128  # words that one with braces may become
SHELL_WORD_CHARS = 4_096  # of a word whose braces are looked at, and of a value that is carried on
SHELL_OPTIONS = 16  # before the first argument of a command; also functions within functions
SHELL_FILE_CHARS = 64 * 1024  # of a file that the command itself writes
