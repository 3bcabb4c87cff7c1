"""Limits and defaults that several packages share, each with its unit in its name.

tests/core/test_limits.py checks how they relate to each other.
"""

# Budgets of a run; an iteration is an answered model call
WORKFLOW_ITERATIONS = 30
CHAT_ITERATIONS = 90
SUBAGENT_ITERATIONS = 50
WORKFLOW_CONTEXT_TOKENS = 60_000
SOFT_SHARE = 0.8

# How often the same thing may go wrong before the run ends
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

# Waiting for a provider
RETRY_DELAYS_S = (5.0, 10.0, 20.0, 40.0)
RETRIES_BEFORE_FALLBACK = 1  # where another model is configured: it answers sooner than the waiting times pass
RETRY_DELAY_CAP_S = 60.0
RETRY_JITTER = 0.2
RETRY_AFTER_CAP_S = 600.0
STALL_TIMEOUT_S = 120.0
CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 600.0  # for a whole answer that is not streamed
STREAM_TIMEOUT_S = 3600.0  # for a whole stream: one that only sends keep-alives must end too
DRAIN_TIMEOUT_S = 1.0  # to read what follows the end of an answer, so that its connection can be reused
CREDENTIAL_REFRESHES = 1
TOKEN_MARGIN_S = 225.0  # Google's metadata server hands out the same token until 4 minutes before it expires
REBINDS = 1
OVERFLOWS = 1

# Fallback models
PRIMARY_COOL_DOWN_S = 60.0

# Running tools
CONCURRENT_TOOLS = 8
TOOL_TIMEOUT_S = 120.0
HOOK_TIMEOUT_S = 30.0
INTERRUPT_GRACE_S = 2.0  # how long a cancelled tool may clean up before it is abandoned

# Sizes of replies, error texts and inline results
REPLY_BYTES = 64 * 1024 * 1024
DRAIN_BYTES = 64 * 1024
ERROR_TEXT_CHARS = 600
INLINE_RESULT_BYTES = 16 * 1024
MAX_OUTPUT_TOKENS = 16_000
BYTES_PER_TOKEN = 4

JOURNAL_FORMAT = 2  # 2 added compactions and undone turns
QUICK_FLUSH_S = 0.005  # a disk this fast may block the event loop; far below what a person notices
TOOL_NAME_CHARS = 64

# Commands in a sandbox
EXEC_TIMEOUT_S = 120.0
EXEC_TIMEOUT_CAP_S = 600.0
EXEC_KEPT_BYTES = 256 * 1024  # of each of stdout and stderr; a longer stream goes to a file in the sandbox
KILL_GRACE_S = 1.0  # between SIGTERM and SIGKILL
CLIENT_SLACK_S = 15.0  # how much later than the sandbox itself the client gives up on a command
OVERFLOW_BYTES = 256 * 1024 * 1024  # largest file for one stream
TRANSFER_STALL_S = 60.0  # without progress of a file going in or out
PROBE_TIMEOUT_S = 10.0
FRAME_BYTES = 256 * 1024
CLIENT_WORDS_BYTES = 8 * 1024  # kept of the messages of podman or kubectl
CLIENT_LEAVING_S = 5.0  # for podman or kubectl to exit after we have hung up
SANDBOX_START_S = 20.0

# Resources of one sandbox
SANDBOX_MEMORY_BYTES = 1024**3
SANDBOX_SPACE_BYTES = 2 * 1024**3
SANDBOX_FILE_BYTES = 1024**3
SANDBOX_PROCESSES = 256
SANDBOX_OPEN_FILES = 1024
SANDBOX_INODES = 200_000
SANDBOX_LOCKS = 10_000  # file locks; a database takes a handful per connection
SANDBOX_CPU_S = 900
SANDBOX_UID = 65532

# Podman and its image
SANDBOX_CPUS = 1
SANDBOX_SHARED_BYTES = 64 * 1024 * 1024  # /dev/shm
PODMAN_CALL_S = 60.0  # for one short call of podman
CONTAINER_START_S = 60.0
PULL_S = 600.0  # for podman to pull an image that is not on this machine
CONTAINER_REMOVALS = 3
LEFTOVERS_S = 15.0  # how long the removal of a sandbox waits until leftovers of other sandboxes are removed
REGISTRY_STALL_S = 120.0  # without output from `podman build`
PACKAGES_STALL_S = 300.0  # without output from the program that makes a root file system
PROGRAM_LEAVING_S = 10.0  # for such a program to clean up after it is told to end

# Kubernetes pods
SANDBOX_DEADLINE_S = 1800
LINGER_S = 300
LINGERING_PODS = 2
CLAIM_WARNING_S = 120.0
REAP_EVERY_S = 60.0
API_TIMEOUT_S = 15.0  # for one request to a cluster
CREDENTIAL_PROGRAM_S = 12.0  # for a kubeconfig's program that prints a credential; part of a request
POD_POLL_S = 0.25
POD_READY_S = 120.0  # from a pod's creation until it runs; nodes may have to be added
PULL_PATIENCE_S = 20.0  # how long pulling an image may fail before its pod is given up: registries have hiccups
POD_VERDICT_S = 2.0  # between a broken connection and the pod's status that says why
POD_REMOVALS = 3
CLAIM_POLL_S = 1.0
CLAIM_DISCARDS = 3  # claimed pods in a row that did not work
RECLAIM_TRIES = 5

# Checkpoints of sandboxes
ARCHIVE_BYTES = 512 * 1024 * 1024
ARCHIVING_S = 300.0  # for one checkpoint in the background, or for restoring one
LAST_ARCHIVE_S = 60.0  # for the checkpoint that a closing session waits for
REMOVAL_S = 30.0  # for a sandbox to be cleaned up or left lingering
ARCHIVE_REST = 4  # the pause before the next checkpoint, as a multiple of how long the last one took

# Tool results
MAX_INLINE_BYTES = 4096
PREVIEW_BYTES = 4608
RESULT_FRAME_BYTES = 1024  # our text around an output: the fence, the path, the source's metadata
METADATA_BYTES = 512
SUFFIX_CHARS = 16
TERMINAL_SEQUENCE_BYTES = 4 * 1024  # longest terminal sequence; anything longer is text

# Fetching into the sandbox
FETCHES = 20
PATH_BYTES = 1024

# Permissions: rules, grants and questions
PATTERN_CHARS = 1_000
JUDGED_CHARS = 256 * 1024  # of arguments; several times what one answer of a model can hold
GRANT_SHOWN_CHARS = 2_000  # of a command in the grants file, for people; the key covers all of it
PARTIAL_OUTPUT_BYTES = 8 * 1024  # of a command that was interrupted, for the model
PROGRESS_LINES = 5  # the last lines of a running tool that its observers see
PROGRESS_CHARS = 200  # of a progress line of a running tool
PERSON_TIMEOUT_S = 86_400.0  # a question that nobody answers in a day means no
LOCK_WAIT_S = 10.0  # for a file to which another process is writing one line

# Masking: how much of a stream may be held back until it is known whether it is secret
MASKING_HELD_BYTES = 128 * 1024
SECRET_CHARS = 8 * 1024  # longer values are masked in pieces
SECRET_SPREAD_BYTES = 4 * 1024  # white space that a value may have gained
ADDRESS_BYTES = 4 * 1024  # user, password and host; registries hand out passwords of 2 to 3 KiB

# The report that is written without a model
DIGEST_LOGS = 8  # logs of failed jobs that are read; the report names the others
DIGEST_LOOKS = 2  # looks into one file whose preview is not enough
DIGEST_RESULT_CHARS = 256 * 1024
DIGEST_REPORT_CHARS = 24_000

# Test reports and Tekton objects
XML_PIECE_BYTES = 16 * 1024  # bytes given to the parser at once
XML_TOKEN_BYTES = 4 * 1024 * 1024  # longest tag or comment, which the parser must hold as a whole
XML_DEPTH = 200
CASES_KEPT = 200
CASES_ALIKE = 10  # cases kept of the same failure
CASE_FIELD_CHARS = 1_000  # of a name, a message or an address
CASE_BODY_CHARS = 6_000
CASE_OUTPUT_CHARS = 1_500  # the end of each of standard output and standard error
CASE_LINKS = 8
OBJECT_BYTES = 1024 * 1024  # largest JSON document that is read as a whole
OBJECT_ITEMS = 10_000
RECORDS_KEPT = 200  # failed ones of a list with one object per line
STATUS_CHARS = 2_000  # of a message in a status

# Fingerprints, and the store of known failures
FINGERPRINT_LINE_CHARS = 4_000
FINGERPRINT_WORDS = 64  # of a line; they lie within its characters, however long the paths between them are
FINGERPRINT_LINES = 2_000
KNOWN_FIELD_CHARS = 500  # of a title, a link, a merge request, a class
KNOWN_EXCERPT_CHARS = 2_000
KNOWN_NAME_CHARS = 1_000  # longest project name; a longer one is refused, because two of them may begin alike
KNOWN_PLACES = 20  # newest merge requests and branches returned for one failure
KNOWN_LINKS = 10
KNOWN_LISTED = 500
KNOWN_FORGOTTEN_AT_ONCE = 500
KNOWN_DAYS = 400  # longest trend
KNOWN_SHARDS = 8  # objects in a bucket that a project's failures are distributed over
KNOWN_SHARD_BYTES = 1024 * 1024  # largest shard; the failures that were not seen for the longest time are dropped
KNOWN_TRACES = 500  # jobs and merge requests per failure that a bucket store can tell from new ones

# Classification: how much of a region or a job is read to find the cause
BLAMED_LINES = 400
BLAMED_LINE_CHARS = 1_200  # the first and the last half of a longer line

# Reading logs
LOG_BLOCK_BYTES = 256 * 1024  # bytes read at once
LOG_LINE_BYTES = 4 * 1024  # kept of one line
BASELINE_LINES = 300_000  # lines remembered of a green log
LOG_KEPT_BYTES = 12 * 1024 * 1024  # all lines that may matter; tails come on top

# The `explain` command
EXCERPT_BYTES = 8 * 1024  # all excerpts together, by default
EXCERPT_BYTES_LEAST = 256
EXCERPT_BYTES_MOST = 1024 * 1024
UNPACKED_PIECE_BYTES = 256 * 1024  # unpacked bytes at once, however well they are compressed
UNPACKING_BYTES = 80 * 1024 * 1024  # memory for unpacking; `xz -9` needs 65 MiB

# Reading over HTTP for the model
URL_CHARS = 4_096
HTTP_PIECE_BYTES = 256 * 1024  # bytes of a body in memory at once, however well they are compressed
HTTP_WORTHWHILE_BYTES = 64 * 1024  # gathered from a fast source before a piece is passed on
HTTP_GATHERING_S = 0.25  # how long a piece of a slow source is gathered
HTTP_REFUSAL_BYTES = 64 * 1024  # of an error response
HTTP_REDIRECTS = 5
HTTP_ADDRESSES = 4  # addresses of one host that are tried
SOURCE_CONNECT_S = 10.0
SOURCE_HEADERS_S = 30.0  # from sending a request until its response begins
SOURCE_STALL_S = 30.0  # between two reads of a body
SOURCE_ATTEMPTS = 4
SOURCE_SILENT_ATTEMPTS = 2  # for a source that does not respond at all
SOURCE_DELAY_S = 0.5
SOURCE_RETRY_AFTER_CAP_S = 30.0
SOURCE_WAIT_S = 45.0  # all pauses of one read together; a tool has TOOL_TIMEOUT_S

# Reading from GitLab
GITLAB_KEEPALIVE_S = 15.0  # how long a connection is kept for the next read
GITLAB_JSON_BYTES = 32 * 1024 * 1024  # of one response
GITLAB_TEXT_BYTES = 2 * 1024**3  # of a log, a diff or a file
GITLAB_ARCHIVE_BYTES = 1024**3
GITLAB_ARTIFACTS_BYTES = 64 * 1024**2  # of a job's archive of artifacts, of which only the directory is read
GITLAB_ARTIFACT_BYTES = 256 * 1024**2  # of one file out of it, unpacked
ARTIFACT_FILES = 10_000  # in an archive whose directory is read
ARTIFACTS_DIRECTORY_BYTES = 4 * 1024**2
ARTIFACTS_MEMORY_BYTES = 4 * 1024**2  # a larger archive goes to a temporary file
ARTIFACT_NAME_CHARS = 1024
GITLAB_LIST_S = 100.0  # for a whole JSON call; less than its tool has, so that partial results are kept
GITLAB_STREAM_S = 900.0  # for a whole call that streams a body
GITLAB_STREAM_TOOL_S = 960.0  # for the tool around such a call
GITLAB_REQUESTS = 500  # requests per call; pages may lead in a circle
GITLAB_PER_PAGE = 100  # GitLab's maximum
GITLAB_DIFFS_PER_PAGE = 30
GITLAB_BASELINE_PIPELINES = 20  # pipelines searched for a green run of a job
GITLAB_RECENT = 20  # pipelines listed by default

# Reading from Konflux
KONFLUX_PAGE = 100  # items per page; KubeArchive takes 1000 at most
KONFLUX_PAGES = 200  # pages per list; tokens may lead in a circle
KONFLUX_PAGE_BYTES = 512 * 1024 * 1024
KONFLUX_ITEM_CHARS = 3 * 1024 * 1024  # clusters store no object over 1.5 MiB; parsing one blocks everything else
KONFLUX_GATHERED_CHARS = 512 * 1024  # gathered at least before an incomplete item is parsed again
KONFLUX_OBJECT_BYTES = 3 * 1024 * 1024
KONFLUX_LOG_BYTES = 1024**3  # per container
KONFLUX_CONTAINERS = 200  # containers of one pod whose logs are read
KONFLUX_LIST_S = 300.0  # for a whole call
KONFLUX_LOGS_S = 600.0

# Reading from Testing Farm
FARM_REQUEST_BYTES = 16 * 1024 * 1024  # of an API response; old ones contain a whole test report
FARM_PART_BYTES = 256 * 1024  # of each other part of a response that is read
FARM_RESULTS_BYTES = 64 * 1024 * 1024  # of a results.xml
FARM_LOG_BYTES = 256 * 1024 * 1024
FARM_CALL_S = 300.0  # for a whole call
FARM_LISTING_BYTES = 1024 * 1024  # of a page that lists a folder
FARM_LISTED = 500  # names per folder
FARM_ENVIRONMENTS = 20
FARM_ENVIRONMENTS_BYTES = 1024 * 1024  # of the list that environments are taken from; a longer one is not read
FARM_FIELD_CHARS = 500

# Reading the configuration
CONFIG_BYTES = 256 * 1024
CONFIG_DEPTH = 32  # nested mappings and lists
CONFIG_NODES = 20_000  # with every alias expanded
CONFIG_FAULTS = 50  # faults reported at once
PROMPT_BYTES = 256 * 1024
CONFIG_POLL_S = 5.0  # between two looks for a changed file

# Defaults of the configuration, besides those above
CONCURRENT_AGENTS = 4
RUNS_PER_MR = 5
SETTLE_S = 60  # after the last change of a head's statuses
SETTLE_CAP_S = 7200

# Defaults of the chat
COMPRESSION_SHARE = 0.75  # of the context, above which the conversation is compacted
PROTECTED_MESSAGES = 20  # the last messages, which are never compacted
MEMORY_CHARS = 2_200
USER_CHARS = 1_375
SUBAGENTS = 3  # at the same time

# Queues; most of these are what SQS allows
QUEUE_BODY_BYTES = 256 * 1024  # what every SQS queue carries unless somebody set less
QUEUE_NAME_CHARS = 128  # of a group or a deduplication id
QUEUE_BATCH = 10  # messages per receive
QUEUE_WAIT_S = 20.0  # longest wait of one receive
QUEUE_HELD_S = 43_200  # longest lease from the receive on, heartbeats included
QUEUE_DEDUP_S = 300.0
QUEUE_TAKEN_S = 120  # the lease of a received message; heartbeats are more frequent
QUEUE_RECEIVES = 3  # tries before a message becomes a dead letter, whatever a queue's own policy says
QUEUE_DEAD_LISTED = 500
QUEUE_LOOK_S = 0.02  # the first pause between two looks for messages of other processes
QUEUE_LOOK_CAP_S = 0.5  # the longest one
QUEUE_POLL_S = 5.0  # for one long poll of SQS; closing waits for its end
QUEUE_POLLS = 32  # concurrent long polls of SQS
QUEUE_CALLS = 8  # other concurrent requests to SQS
QUEUE_ANSWER_S = 10.0  # for SQS to answer, besides the time it was asked to wait
QUEUE_ATTEMPTS = 4
QUEUE_LISTING_S = 30  # how long dead letters are held while somebody looks at them

# Sanitising notes
NOTE_CHARS = 1_000_000  # GitLab's maximum

# Writing to GitLab
FORGE_CONNECT_S = 10.0
FORGE_IDLE_S = 3.0  # how long a connection is kept for the next request
FORGE_ANSWER_S = 60.0  # for a whole response, its body included
FORGE_LEAVING_S = 3.0  # for a write to end whose work was cancelled
FORGE_ATTEMPTS = 5
FORGE_DELAY_S = 1.0  # the first pause; each further one is twice as long
FORGE_WAIT_S = 90.0  # all pauses of one request together; a longer Retry-After fails at once
FORGE_JSON_BYTES = 64 * 1024 * 1024  # of one response; a page of threads may hold many long notes
FORGE_SAID_CHARS = 300  # of GitLab's own message in a sentence of ours
FORGE_PER_PAGE = 100  # GitLab's maximum
FORGE_DIFFS_PER_PAGE = 30
FORGE_PAGES = 200  # pages per list; pages may lead in a circle
FORGE_MARKER_CHARS = 4_096
FORGE_TITLE_CHARS = 200  # of a fold
FORGE_FOLD_CHARS_LEAST = 1_000  # a fold with less room is left out
FORGE_REQUESTS_AT_MOST = 20  # merge requests with the same head
FORGE_PIPELINES_LOOKED_AT = 50  # pipelines of a branch searched for the newest finished one
NOTE_APPEARS_S = 20.0  # how long after its event GitLab may not show a note yet
ACCESS_S = 60.0  # how long a person's access level is cached
ACCESS_REMEMBERED = 10_000  # people in that cache

# Findings on the lines of a diff
FINDINGS = 20  # per run
FINDING_CHARS = 4_000  # of one finding's text
FINDING_PATH_CHARS = 1_000
FINDING_TITLE_CHARS = 160  # of a finding's position and first words in a list
SUGGESTION_LINES = 100
SUGGESTION_CHARS = 8_000
SUGGESTION_ABOVE = 100  # lines above its own line that a suggestion may replace: GitLab's maximum
SUGGESTION_FILE_BYTES = 1_000_000  # largest file in which a suggestion is tried
SUGGESTION_TRY_S = 90.0  # including the download of the file, and a sandbox that may have to be started
DISMISSAL_CHARS = 240  # longest reply that can dismiss a finding
FINDING_NEAR_LINES = 3  # largest distance of two findings about the same place
FINDING_TELLING_CHARS = 12  # shortest line of code that is recognised wherever it is

# Failures that a run observes in the output of its tools
FAILURES_SEEN = 30

# The text of notes, and how a write is verified
NOTE_WRITES = 3  # of one note, each after a look that did not find it
NOTE_LOOKS_S = (1.0, 5.0)  # pauses before each look for a note whose write is uncertain: it may be slow to appear
NOTE_TRANSCRIPT_CHARS = 60_000  # of a transcript; the rest is in the session
NOTE_QUOTED_CHARS = 300  # of a title, a name or a sentence in a line of ours
NOTE_FAILURES = 5  # known failures that are named, and as many jobs
NOTE_TROUBLE = 5  # sentences about what could not be stored

# Routing
MESSAGE_CHARS = 64 * 1024  # of a person's message
MESSAGE_BYTES = 200 * 1024  # of that message as it travels: escaped in an order, which is one queue message
QUOTED_CHARS = 60  # of a person's words in a sentence of ours
ITERATIONS_FACTOR = 2  # a person may ask for this many times the configured iterations
SETTLE_LOOK_S = 5.0  # at least, between two looks at what is still running
SETTLE_LOOK_CAP_S = 60.0  # at most
SETTLE_NAMED = 5  # checks that are named in a reason

# The `doctor` command
DOCTOR_CHECK_S = 60.0  # for one check; a sandbox and a model take the longest
DOCTOR_CLAIM_S = 30.0  # until doctor asks why no sandbox of a pool comes free
DOCTOR_SANDBOX_S = 50.0  # for the whole check of a sandbox, so that it ends before DOCTOR_CHECK_S and says why
DOCTOR_ANSWER_S = 15.0  # for GitLab to answer
DOCTOR_ANSWER_BYTES = 2 * 1024 * 1024
DOCTOR_CHECKS = 8  # concurrent checks
DOCTOR_OUTPUT_TOKENS = 256  # of the one test answer of a model; models that think first need some
DOCTOR_SKEW_S = 30.0  # between two clocks, above which doctor warns
DOCTOR_SKEW_CAP_S = 240.0  # above which signed webhooks may be refused
DOCTOR_EXPIRY_DAYS = 14
DOCTOR_FREE_BYTES = 1024**3  # on the disk of the state folder, below which doctor warns
DOCTOR_FREE_LEAST_BYTES = 64 * 1024**2

# Receiving events
EVENT_BYTES = 25 * 1024 * 1024  # GitLab sends no more
EVENTS_HELD_BYTES = 8 * EVENT_BYTES  # all bodies that are being received at once
EVENT_BODY_S = 20.0  # for a body to arrive; GitLab itself gives up after 10
SIGNATURE_AGE_S = 300  # largest difference between a signature's time and ours, either way
SIGNATURES = 16  # signatures of one delivery that are checked
READY_S = 2.0  # how long an answer about the queue is cached, so that frequent probes cost nothing
OBJECT_ANSWER_S = 60.0  # for an object store to take or return an object
OBJECT_RETRIES = 3
OBJECT_NAME_CHARS = 512

# Working on the queue
WORK_AT_ONCE = 24  # groups besides those that run or wait for a slot
WORK_PAUSES_S = (30, 300)  # before the second and the third try
WORK_AWAY_S = (30, 60, 120, 240, *(300,) * 11)  # about an hour in all; waiting for GitLab uses up no try
SLOT_PAUSE_S = 5.0  # how long an order waits for a slot, and before one that got none is tried again
SLOT_FULL_PAUSES = 1.5  # longest pause between two looks at the queue while all slots are taken, in SLOT_PAUSE_S
SLOT_LINE = 256  # longest line of orders for a slot, including those that wait without a limit
SLOT_LOOK_S = 0.1  # between the retries of two orders that wait for a slot, so that many cost no more than a few
BUSY_PAUSE_S = 60.0  # before a rate-limited GitLab is asked again: its limits are per minute
TAKEN_PAUSE_S = 30.0  # before a session that another process still holds is tried again
CONDUCTED_REMEMBERED = 200  # orders whose failures are kept until their results are posted
LATER_CAP_S = 3600  # longest single wait
OUTAGE_PAUSE_S = 0.5  # the first pause after a queue could not be reached
OUTAGE_PAUSE_CAP_S = 30.0
PARKING_S = 15.0  # for cancelled runs to end and be put back on the queue
LATER_REMEMBERED = 1_000

# The `serve` command
SERVE_GRACE_S = 840.0  # for runs to end after a stop, within the 900 s that a deployment gives
SERVE_CLOSING_S = 10.0  # for open requests to be answered

# The demonstration
DEMO_WAIT_S = 2.0  # at most, before a model is asked again
DEMO_LOOK_S = 0.1  # between two looks for the note
DEMO_S = 300.0  # with a model that is called over the network
