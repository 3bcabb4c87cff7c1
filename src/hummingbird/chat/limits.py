"""The bounds of what a conversation shows and takes, each with its unit. Beside `domain.limits`, by the same rules."""

# what is typed and pasted
MESSAGE_BYTES = 32 * 1024  # of one message; what was pasted beyond it is put away as a file
INLINE_BYTES = 256 * 1024  # of one message where there is no sandbox to put anything into; about 80,000 tokens
PASTE_CHARS = 8 * 1024  # a longer paste stands in the input line as a placeholder
PASTE_LINES = 200
MENTION_BYTES = 32 * 1024  # of one @file whose content goes along
MENTIONS = 16  # files in one message; the rest is left as it is
ATTACHED_HEAD_LINES = 20  # of what was put away, shown in the message
ATTACHED_HEAD_CHARS = 2_000
PIPED_BYTES = 16 * 1024 * 1024  # of standard input, as one message
INPUT_ROWS = 12  # of the terminal, for what is being typed
HISTORY_ENTRIES = 1_000
HISTORY_ENTRY_CHARS = 64 * 1024  # with what was pasted; the rest is not kept

# what is shown
LIVE_ROWS = 10  # of the terminal, for what goes on right now
REDRAW_S = 0.06  # between two looks at what streams; keys are echoed at once
STANDING_S = 0.25  # between two looks at where the conversation stands
FENCE_LINES = 40  # of code that is held back before it is printed
BLOCK_CHARS = 16 * 1024  # of any other block; it is then printed as far as it came
ARGUMENT_CHARS = 90  # of a call's arguments, on its line
DIFF_LINES = 60  # of what an edit changed
RESULT_LINES = 200  # of a tool's result that is shown with /verbose
SESSIONS_SHOWN = 20
HITS_SHOWN = 10
PANEL_CHARS = 600  # of a question that is repeated above the input; all of it is printed before

# keys
QUIET_S = 0.5  # without a key, before a question takes an answer: what was typed ahead is not meant for it
TWICE_S = 2.0  # between two Ctrl-C that mean: leave
LEAVING_S = 5.0  # for a run and its processes to end when one leaves

# completion
COMPLETION_ENTRIES = 20_000  # of the file system that are looked at for one list
COMPLETION_S = 0.15
COMPLETIONS = 40
