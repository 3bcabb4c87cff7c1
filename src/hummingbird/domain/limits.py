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

JOURNAL_FORMAT = 2  # 2: compactions, and turns that were taken back
QUICK_FLUSH_S = 0.005  # a disk this quick may hold the event loop; far below what a person notices
TOOL_NAME_CHARS = 64

# X2: commands in a sandbox
EXEC_TIMEOUT_S = 120.0
EXEC_TIMEOUT_CAP_S = 600.0
EXEC_KEPT_BYTES = 256 * 1024  # of each of stdout and stderr; the whole goes to a file in the sandbox
KILL_GRACE_S = 1.0  # between SIGTERM and SIGKILL
CLIENT_SLACK_S = 15.0  # how much later than the sandbox itself we give up on a command
OVERFLOW_BYTES = 256 * 1024 * 1024  # of one stream's file
TRANSFER_STALL_S = 60.0  # a file going in or out that gets nowhere
PROBE_TIMEOUT_S = 10.0
FRAME_BYTES = 256 * 1024
CLIENT_WORDS_BYTES = 8 * 1024  # what is kept of what podman or kubectl say
CLIENT_LEAVING_S = 5.0  # for podman or kubectl to end once we have hung up
SANDBOX_START_S = 20.0

# X3, X4: what one sandbox may use
SANDBOX_MEMORY_BYTES = 1024**3
SANDBOX_SPACE_BYTES = 2 * 1024**3
SANDBOX_FILE_BYTES = 1024**3
SANDBOX_PROCESSES = 256
SANDBOX_OPEN_FILES = 1024
SANDBOX_INODES = 200_000
SANDBOX_LOCKS = 10_000  # of files; a database takes a handful a connection
SANDBOX_CPU_S = 900
SANDBOX_UID = 65532

# X4: podman and the image for it
SANDBOX_CPUS = 1
SANDBOX_SHARED_BYTES = 64 * 1024 * 1024  # /dev/shm
PODMAN_CALL_S = 60.0  # one call of podman that is no conversation
CONTAINER_START_S = 60.0
CONTAINER_REMOVALS = 3
LEFTOVERS_S = 15.0  # that a sandbox which is removed waits for the leftovers of others
REGISTRY_STALL_S = 120.0  # without a word from `podman build`
PACKAGES_STALL_S = 300.0  # without a word from what makes a root file system
PROGRAM_LEAVING_S = 10.0  # for such a program to clean up once it is told to end

# X5, X6
SANDBOX_DEADLINE_S = 1800
LINGER_S = 300
LINGERING_PODS = 2
CLAIM_WARNING_S = 120.0
REAP_EVERY_S = 60.0
API_TIMEOUT_S = 15.0  # one request to a cluster
CREDENTIAL_PROGRAM_S = 12.0  # for the program of a kubeconfig that prints a credential; part of a request
POD_POLL_S = 0.25
POD_READY_S = 120.0  # from its creation until it runs; nodes may have to be added
PULL_PATIENCE_S = 20.0  # with an image that cannot be pulled: registries have hiccups
POD_VERDICT_S = 2.0  # between a broken conversation and the pod's status that says why
POD_REMOVALS = 3
CLAIM_POLL_S = 1.0
CLAIM_DISCARDS = 3  # pods in a row that were claimed and did not work
RECLAIM_TRIES = 5

# X7
ARCHIVE_BYTES = 512 * 1024 * 1024
ARCHIVING_S = 300.0  # one checkpoint in the background, or bringing one back
LAST_ARCHIVE_S = 60.0  # the one that a closing session waits for
REMOVAL_S = 30.0  # for a sandbox to be cleaned up or left lingering
ARCHIVE_REST = 4  # times as long as the last checkpoint took, before the next one begins

# T4, T5
MAX_INLINE_BYTES = 4096
PREVIEW_BYTES = 4608
RESULT_FRAME_BYTES = 1024  # what we say around an output: the fence, the path, what its source says of itself
METADATA_BYTES = 512
SUFFIX_CHARS = 16
TERMINAL_SEQUENCE_BYTES = 4 * 1024  # of one sequence for a terminal; what is longer is text

# T3
FETCHES = 20
PATH_BYTES = 1024

# T9: rules, grants and questions
PATTERN_CHARS = 1_000
JUDGED_CHARS = 256 * 1024  # of arguments; several times what one answer of a model can hold
GRANT_SHOWN_CHARS = 2_000  # of a command in the file of grants, for people; the key stands for all of it
PERSON_TIMEOUT_S = 86_400.0  # a question that nobody answers in a day is a no
LOCK_WAIT_S = 10.0  # for a file that another process writes one line to

# T7: what may be held back of a stream until it is known whether it is secret
MASKING_HELD_BYTES = 128 * 1024
SECRET_CHARS = 8 * 1024  # longer values are masked in pieces
SECRET_SPREAD_BYTES = 4 * 1024  # of white space that a value has gained
ADDRESS_BYTES = 4 * 1024  # of user, password and host; registries hand out passwords of 2 to 3 KiB

# M8: what the model without a model asks for and looks at
DIGEST_LOGS = 8  # of failed jobs; the report names the others
DIGEST_LOOKS = 2  # into one file, where its preview is not enough
DIGEST_RESULT_CHARS = 256 * 1024
DIGEST_REPORT_CHARS = 24_000

# V7: test reports and Tekton objects
XML_PIECE_BYTES = 16 * 1024  # what the parser is given at once
XML_TOKEN_BYTES = 4 * 1024 * 1024  # of one tag or comment; the parser must hold it whole
XML_DEPTH = 200
CASES_KEPT = 200
CASES_ALIKE = 10  # kept of one and the same failure
CASE_FIELD_CHARS = 1_000  # of a name, a message or an address
CASE_BODY_CHARS = 6_000
CASE_OUTPUT_CHARS = 1_500  # of each of standard output and standard error; the end
CASE_LINKS = 8
OBJECT_BYTES = 1024 * 1024  # of JSON that is read whole
OBJECT_ITEMS = 10_000
RECORDS_KEPT = 200  # failed ones of a list with one object a line
STATUS_CHARS = 2_000  # of a message in a status

# V6: fingerprints, and what is remembered of known failures
FINGERPRINT_LINE_CHARS = 4_000
FINGERPRINT_WORDS = 64  # of a line; few enough to lie within its characters, however long the paths between them are
FINGERPRINT_LINES = 2_000
KNOWN_FIELD_CHARS = 500  # of a title, a link, a merge request, a class
KNOWN_EXCERPT_CHARS = 2_000
KNOWN_NAME_CHARS = 1_000  # of a project's name; a longer one is refused, for two of them may begin alike
KNOWN_PLACES = 20  # newest merge requests and branches of one failure that are told
KNOWN_LINKS = 10
KNOWN_LISTED = 500
KNOWN_FORGOTTEN_AT_ONCE = 500
KNOWN_DAYS = 400  # of a trend
KNOWN_SHARDS = 8  # objects in a bucket that a project's failures are spread over
KNOWN_SHARD_BYTES = 1024 * 1024  # of one; what was not seen for the longest time makes room
KNOWN_TRACES = 500  # jobs and merge requests of one failure that a bucket can tell from new ones

# V5: what is read of a region or a job to say what is to blame
BLAMED_LINES = 400
BLAMED_LINE_CHARS = 1_200  # the first and the last half of a longer one

# V1: reading logs
LOG_BLOCK_BYTES = 256 * 1024  # read at once
LOG_LINE_BYTES = 4 * 1024  # kept of one line
BASELINE_LINES = 300_000  # of a green log that are remembered
LOG_KEPT_BYTES = 12 * 1024 * 1024  # of all lines that may matter; tails come on top

# V4: what `explain` reads and shows
EXCERPT_BYTES = 8 * 1024  # of all excerpts together, unless somebody asks for another number
EXCERPT_BYTES_LEAST = 256
EXCERPT_BYTES_MOST = 1024 * 1024
UNPACKED_PIECE_BYTES = 256 * 1024  # that a packed file gives at once, however small it is packed
UNPACKING_BYTES = 80 * 1024 * 1024  # that unpacking may need; `xz -9` needs 65 MiB

# D7, D8: what is read over HTTP for the model
URL_CHARS = 4_096
HTTP_PIECE_BYTES = 256 * 1024  # of a body that is held at once, however small it is packed
HTTP_WORTHWHILE_BYTES = 64 * 1024  # that a quick source is waited for before a piece is handed on
HTTP_GATHERING_S = 0.25  # and how long a slow one
HTTP_REFUSAL_BYTES = 64 * 1024  # of an answer that says no
HTTP_REDIRECTS = 5
HTTP_ADDRESSES = 4  # of one host that are tried
SOURCE_CONNECT_S = 10.0
SOURCE_HEADERS_S = 30.0  # from sending a request until its answer begins
SOURCE_STALL_S = 30.0  # between two reads of a body
SOURCE_ATTEMPTS = 4
SOURCE_SILENT_ATTEMPTS = 2  # with a source that says nothing at all
SOURCE_DELAY_S = 0.5
SOURCE_RETRY_AFTER_CAP_S = 30.0
SOURCE_WAIT_S = 45.0  # all pauses of one read together; a tool has TOOL_TIMEOUT_S

# D2, D8: what is read from GitLab
GITLAB_CHUNKS_AHEAD = 4  # of HTTP_PIECE_BYTES, between the thread that reads and whoever takes them
GITLAB_JSON_BYTES = 32 * 1024 * 1024  # of one answer
GITLAB_TEXT_BYTES = 2 * 1024**3  # of a log, a diff, a file
GITLAB_ARCHIVE_BYTES = 1024**3
GITLAB_LIST_S = 100.0  # a whole call that asks for JSON; less than its tool has, so that what came is kept
GITLAB_STREAM_S = 900.0  # a whole call that streams a body
GITLAB_STREAM_TOOL_S = 960.0  # the tool around it
GITLAB_REQUESTS = 500  # of one call; pages may lead in a circle
GITLAB_PER_PAGE = 100  # the most that GitLab gives
GITLAB_DIFFS_PER_PAGE = 30
GITLAB_BASELINE_PIPELINES = 20  # that are searched for a green run of a job
GITLAB_RECENT = 20  # pipelines that are listed unless somebody asks for another number
GITLAB_THREAD_LEAVING_S = 1.0  # for a thread to end once its call is over

# D5: what is read of Konflux
KONFLUX_PAGE = 100  # items; KubeArchive takes 1000 at most
KONFLUX_PAGES = 200  # of one list; tokens may lead in a circle
KONFLUX_PAGE_BYTES = 512 * 1024 * 1024
KONFLUX_ITEM_CHARS = 3 * 1024 * 1024  # clusters store no object over 1.5 MiB; parsing one stops all else
KONFLUX_GATHERED_CHARS = 512 * 1024  # that are waited for when an item is not whole yet
KONFLUX_OBJECT_BYTES = 3 * 1024 * 1024
KONFLUX_LOG_BYTES = 1024**3  # of one container
KONFLUX_CONTAINERS = 200  # of one pod whose logs are asked for
KONFLUX_LIST_S = 300.0  # a whole call
KONFLUX_LOGS_S = 600.0

# D6: Testing Farm
FARM_REQUEST_BYTES = 16 * 1024 * 1024  # of an answer of its API; old ones hold a whole test report
FARM_PART_BYTES = 256 * 1024  # of each other part of it that is looked at
FARM_RESULTS_BYTES = 64 * 1024 * 1024  # of a results.xml
FARM_LOG_BYTES = 256 * 1024 * 1024
FARM_CALL_S = 300.0  # a whole call
FARM_LISTING_BYTES = 1024 * 1024  # of a page that lists a folder
FARM_LISTED = 500  # names of a folder
FARM_ENVIRONMENTS = 20
FARM_ENVIRONMENTS_BYTES = 1024 * 1024  # of which those are taken; more are not looked at
FARM_FIELD_CHARS = 500

# G1, G2: reading the configuration
CONFIG_BYTES = 256 * 1024
CONFIG_DEPTH = 32  # of mappings and lists in each other
CONFIG_NODES = 20_000  # with every alias written out
CONFIG_FAULTS = 50  # that are told at once
PROMPT_BYTES = 256 * 1024
CONFIG_POLL_S = 5.0  # G4

# G10: what holds unless the configuration says otherwise, besides what stands above
CONCURRENT_AGENTS = 4
RUNS_PER_MR = 5
SETTLE_S = 60  # R1: after the last change of a head's statuses
SETTLE_CAP_S = 7200

# G9
COMPRESSION_SHARE = 0.75  # of the context, from which it is compressed
PROTECTED_MESSAGES = 20  # the last ones, which stay whole
MEMORY_CHARS = 2_200
USER_CHARS = 1_375
SUBAGENTS = 3  # at once

# E3: queues; most of these are what SQS allows
QUEUE_BODY_BYTES = 1024 * 1024
QUEUE_NAME_CHARS = 128  # of a group or a deduplication id
QUEUE_BATCH = 10  # messages of one receive
QUEUE_WAIT_S = 20.0  # of one receive
QUEUE_HELD_S = 43_200  # from a receive, heart-beats included
QUEUE_DEDUP_S = 300.0
QUEUE_TAKEN_S = 120  # that whoever receives a message has it; heart-beats are more frequent
QUEUE_RECEIVES = 3  # before a message is a dead letter
QUEUE_DEAD_LISTED = 500
QUEUE_LOOK_S = 0.02  # the first pause between two looks for what other processes have sent
QUEUE_LOOK_CAP_S = 0.5  # the longest one
QUEUE_POLL_S = 5.0  # of one request to SQS that waits; closing waits for its end
QUEUE_POLLS = 32  # such requests at once
QUEUE_CALLS = 8  # other requests to SQS at once
QUEUE_ANSWER_S = 10.0  # for SQS to answer, besides what it was asked to wait
QUEUE_ATTEMPTS = 4
QUEUE_LISTING_S = 30  # that dead letters are held while somebody looks at them

# N5: notes made safe
NOTE_CHARS = 1_000_000  # GitLab takes no more
NOTE_PARSED_CHARS = 32 * 1024  # of Markdown; the parser is slow, and a longer note is made safe without it
NOTE_ROUNDS = 6  # of rewriting, before a note is posted as one block of code

# N3: the forge
FORGE_CONNECT_S = 10.0
FORGE_IDLE_S = 3.0  # that a connection is kept for the next request
FORGE_ANSWER_S = 60.0  # for a whole answer, its body included
FORGE_ATTEMPTS = 5
FORGE_DELAY_S = 1.0  # the first pause; each further one is twice as long
FORGE_WAIT_S = 90.0  # all pauses of one request together; who is told to wait longer gives up at once
FORGE_JSON_BYTES = 64 * 1024 * 1024  # of one answer; a page of threads may hold many long notes
FORGE_REFUSAL_BYTES = 64 * 1024  # of an answer that says no
FORGE_SAID_CHARS = 300  # of GitLab's own words in a sentence of ours
FORGE_PER_PAGE = 100  # the most that GitLab gives
FORGE_DIFFS_PER_PAGE = 30
FORGE_PAGES = 200  # of one list; pages may lead in a circle
FORGE_MARKER_CHARS = 4_096
FORGE_TITLE_CHARS = 200  # of a fold
FORGE_FOLD_CHARS_LEAST = 1_000  # a fold that has less room is left out
FORGE_REQUESTS_AT_MOST = 20  # merge requests with one and the same head
FORGE_PIPELINES_LOOKED_AT = 50  # of a branch, for the newest finished one
NOTE_APPEARS_S = 20.0  # after its event, in which GitLab may not show a note yet
ACCESS_S = 60.0  # that somebody's access is remembered
ACCESS_REMEMBERED = 10_000  # people

# W2: findings on the lines of a diff
FINDINGS = 20  # of one run
FINDING_CHARS = 4_000  # of what one says
FINDING_PATH_CHARS = 1_000
FINDING_TITLE_CHARS = 160  # of where it is, and of how it begins, in a list
SUGGESTION_LINES = 100
SUGGESTION_CHARS = 8_000
SUGGESTION_ABOVE = 100  # lines above the one that it is on: GitLab's bound
SUGGESTION_FILE_BYTES = 1_000_000  # of a file in which one is tried
SUGGESTION_TRY_S = 90.0  # with the file's way here, and a sandbox that may have to be started
DISMISSAL_CHARS = 240  # of a reply that says that nothing will be done about a finding
FINDING_NEAR_LINES = 3  # apart, and still about the same place
FINDING_TELLING_CHARS = 12  # of a line of code, from which it is told from others wherever it stands

# N8: failures that a run comes across
FAILURES_SEEN = 30
FAILURES_SEEN_AT_ONCE = 5  # in one output

# N3, N6–N8: what notes say, and how a write is made sure of
NOTE_WRITES = 3  # of one note, each after a look that did not find it
NOTE_LOOKS_S = (1.0, 5.0)  # pauses before each look for a note whose write ended in doubt: it may be slow to appear
NOTE_TRANSCRIPT_CHARS = 60_000  # of a transcript; the rest is in the session
NOTE_QUOTED_CHARS = 300  # of a title, a name or a sentence that stands in a line of ours
NOTE_FAILURES = 5  # known failures that are named, and as many jobs
NOTE_TROUBLE = 5  # sentences about what could not be kept

# R1, R3, R6: routing
MESSAGE_CHARS = 64 * 1024  # of what a person writes to us: in an order, which is one message of a queue, all escaped
QUOTED_CHARS = 60  # of somebody's words in a sentence of ours
ITERATIONS_FACTOR = 2  # times what is configured may be asked for
SETTLE_LOOK_S = 5.0  # at least, between two looks at what is still running
SETTLE_LOOK_CAP_S = 60.0  # at most
SETTLE_NAMED = 5  # checks that are named in a reason

# G7: what `doctor` tries
DOCTOR_CHECK_S = 60.0  # one check; a sandbox and a model take the longest
DOCTOR_ANSWER_S = 15.0  # for GitLab to answer
DOCTOR_ANSWER_BYTES = 2 * 1024 * 1024
DOCTOR_CHECKS = 8  # at once
DOCTOR_OUTPUT_TOKENS = 256  # of the one answer that a model is asked for; models that think first need some
DOCTOR_SKEW_S = 30.0  # between two clocks, from which somebody should look
DOCTOR_SKEW_CAP_S = 240.0  # and from which signed webhooks may be refused
DOCTOR_EXPIRY_DAYS = 14
DOCTOR_FREE_BYTES = 1024**3  # on the disk of the state folder, below which somebody should look
DOCTOR_FREE_LEAST_BYTES = 64 * 1024**2

# E1: the doors that events come in by
EVENT_BYTES = 25 * 1024 * 1024  # GitLab sends no more
EVENTS_HELD_BYTES = 8 * EVENT_BYTES  # of all bodies that are being sent to us at once
EVENT_BODY_S = 20.0  # for a body to arrive; GitLab itself gives up after 10
SIGNATURE_AGE_S = 300  # between a signature's time and ours, either way
SIGNATURES = 16  # of one delivery that are looked at
READY_S = 2.0  # that an answer about the queue holds, so that asking often costs nothing
OBJECT_ANSWER_S = 60.0  # for a store of large things to take or give one
OBJECT_RETRIES = 3
OBJECT_NAME_CHARS = 512

# E3, E4: working off the queue
WORK_AT_ONCE = 24  # groups besides those that run or stand in line for a slot
WORK_PAUSES_S = (30, 300)  # before the second and the third try
WORK_AWAY_S = (30, 60, 120, 240, *(300,) * 11)  # about an hour in all that a GitLab may be away at no cost of a try
SLOT_PAUSE_S = 5.0  # that an order stands in line for a slot, and before one that got none is looked at again
SLOT_FULL_PAUSES = 1.5  # of these, between two looks at the queue while all slots are taken: others may have room
SLOT_LINE = 256  # orders that stand in line, those included that wait as long as it takes
SLOT_LOOK_S = 0.1  # between two such looks, however many orders wait for a slot
BUSY_PAUSE_S = 60.0  # before GitLab is asked again that limits how often it may be: its limits are of a minute
TAKEN_PAUSE_S = 30.0  # before a session that another process still has is looked at again
CONDUCTED_REMEMBERED = 200  # orders whose failures are known until their results are told
LATER_CAP_S = 3600  # of one wait
OUTAGE_PAUSE_S = 0.5  # the first pause with a queue that cannot be reached
OUTAGE_PAUSE_CAP_S = 30.0
PARKING_S = 15.0  # for cancelled runs to end and be put back
LATER_REMEMBERED = 1_000

# E4: `serve`
SERVE_GRACE_S = 840.0  # for runs to end after a stop, within the 900 that a deployment gives
SERVE_CLOSING_S = 10.0  # for requests that are being answered

# The demonstration
DEMO_WAIT_S = 2.0  # at most, before a model is asked again
DEMO_LOOK_S = 0.1  # between two looks whether the note is there
DEMO_S = 300.0  # that it may take with a model that is asked over the network
