"""Every constant that bounds something, in one place; tests check how they relate to each other."""

# L6: iterations are answered model calls
WORKFLOW_ITERATIONS = 30
CHAT_ITERATIONS = 90
SUBAGENT_ITERATIONS = 50
WORKFLOW_CONTEXT_TOKENS = 60_000
SOFT_SHARE = 0.8

# L9–L11: how often the same thing may go wrong before the run ends
EMPTY_NUDGES = 2
MALFORMED_NUDGES = 2
CONTINUATIONS = 3
STRIKES = 3
REPEATS_NOTICED = 3
REPEATS_FATAL = 5
LONGEST_CYCLE = 5
REPEAT_WINDOW = 10
FINAL_ATTEMPTS = 2
PAUSES = 8

# L13: waiting for a provider
RETRY_DELAYS_S = (5.0, 10.0, 20.0, 40.0)
RETRY_DELAY_CAP_S = 60.0
RETRY_JITTER = 0.2
RETRY_AFTER_CAP_S = 600.0
STALL_TIMEOUT_S = 120.0
CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 600.0  # a whole answer that is not streamed
STREAM_TIMEOUT_S = 3600.0  # a whole stream: one that only keeps itself alive must end too
DRAIN_TIMEOUT_S = 1.0  # for what comes after the end of an answer, so that its connection can be used again
CREDENTIAL_REFRESHES = 1
TOKEN_MARGIN_S = 225.0  # Google's metadata server hands out the same token until 4 minutes before its end
REBINDS = 1
OVERFLOWS = 1

# L14
PRIMARY_COOL_DOWN_S = 60.0

# L17
CONCURRENT_TOOLS = 8
TOOL_TIMEOUT_S = 120.0
HOOK_TIMEOUT_S = 30.0
INTERRUPT_GRACE_S = 2.0  # how long a cancelled tool may take to clean up before it is left behind

# what a reply, an error text or an inline result may weigh
REPLY_BYTES = 64 * 1024 * 1024
DRAIN_BYTES = 64 * 1024
ERROR_TEXT_CHARS = 600
INLINE_RESULT_BYTES = 16 * 1024
MAX_OUTPUT_TOKENS = 16_000
BYTES_PER_TOKEN = 4

JOURNAL_FORMAT = 1
QUICK_FLUSH_S = 0.005  # a disk this quick may hold the event loop; far below what a person notices
TOOL_NAME_CHARS = 64
