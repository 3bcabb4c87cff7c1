"""The bounds of what is exchanged with an editor, each with its unit. Beside `domain.limits`, by the same rules."""

FRAME_BYTES = 32 * 1024 * 1024  # of one message of the editor; a longer one is refused, and the next one is read
READ_BYTES = 64 * 1024
WRITTEN_AT_ONCE = 64  # frames in one write, if so many wait
QUOTED_CHARS = 300  # of what somebody sent, in a sentence about it

CONVERSATIONS = 64  # open at once in one process
WAITING = 16  # messages of one conversation that wait for the one under way
LISTED = 50  # sessions on one page

RESULT_CHARS = 16 * 1024  # of a tool's result that is shown; the model has all of it
RAW_CHARS = 64 * 1024  # of a call's arguments that go along as they are
TITLE_CHARS = 120
OLD_FILE_BYTES = 256 * 1024  # of a file that is read to show what an edit will change
BLOB_BYTES = 16 * 1024 * 1024  # of a file that came along with a message

LEAVING_S = 5.0  # for a run and its processes to end when the editor is gone
FLUSH_S = 1.0  # for the last words to be written
FOLDERS_BYTES = 1024 * 1024  # of the list of where sessions began

CANCELLED_S = 0.17  # until a cancelled message is answered, whatever its run still has to end
INSIST_S = 0.02  # between two interrupts of a run that may not have been there for the first
