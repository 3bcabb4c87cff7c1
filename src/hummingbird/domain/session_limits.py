"""The bounds of sessions and of what keeps them (S1–S4), each with its unit. Beside `limits`, by the same rules."""

# S1: what a session may weigh
SESSION_ID_CHARS = 128
JOURNAL_BYTES = 256 * 1024 * 1024  # several hundred thousand entries; a run that needs more has gone wrong
SEGMENT_BYTES = 128 * 1024  # of a journal's tail in a bucket, which each commit writes anew, before it is sealed
SEGMENTS_AT_ONCE = 16  # sealed ones that are read at the same time
SESSIONS_AT_ONCE = 4  # that are read to be indexed: each may be as long as a journal can
CONTEXT_BYTES = 64 * 1024 * 1024  # of a context.json that is brought up to date
SUMMARY_CHARS = 120  # of a session's title

# Whose a session in a bucket is. Nothing rests on these but patience: every write there is conditional.
LEASE_S = 60.0  # that it stays somebody's who gives no sign of life
LEASE_BEAT_S = 15.0  # between two signs
COMMIT_S = 30.0  # for a bucket to take a commit, tries included, before the run goes on without it
COMMIT_REST_S = 60.0  # before a bucket that did not is tried again

# Buckets
OBJECT_WHOLE_S = 6 * 3600.0  # for one answer to be read to its end: its reader may be slow, the store may not
OBJECT_PIECE_BYTES = 5 * 1024 * 1024  # the smallest part that S3 and Google take; 10,000 of them are 48 GiB
OBJECT_PIECES_AT_ONCE = 4  # on their way up; each is held until it has arrived
OBJECT_CHUNK_BYTES = 1024 * 1024
GOOGLE_PAUSE_S = 1.0  # before Google is asked again, which takes a write a second of one name
GOOGLE_PAUSE_CAP_S = 8.0

# O3: what hosts share besides sessions, in small objects of a bucket that anybody may change
SHARED_S = 15.0  # for a change of one, however often others were first: a run waits for it
SHARED_TRIES = 2  # writes that fail while reading works, before it is given up
SHARED_REST_S = 30.0  # that nobody waits for a bucket which has just failed; what was spent is added later
SHARED_PAUSE_S = 0.02  # at most, before a change is tried again for the first time
SHARED_PAUSE_CAP_S = 1.0
SHARED_HELD = 32  # objects of known failures that a process has in memory, so that a change is one request
SPENDERS = 128  # processes whose spending of a day is told apart
SPENDING_BYTES = 64 * 1024  # of a project's day
SPENDING_FRESH_S = 60.0  # that what was read last still holds while the bucket is away
SPENDING_DAYS = 40  # that are kept

# S4: the index
SEARCH_HITS = 20
FRESH_S = (
    3.0  # that a search waits for the index to be brought up to date; it goes on behind, and what is there is searched
)
SEARCH_WORDS = 32
SNIPPET_TOKENS = 24
INDEXED_CHARS = 64 * 1024  # of one entry
SEARCH_CHARS = 4096  # of a query that are read
SEARCH_WORD_CHARS = 200  # of one word of it
SEARCH_PREFIX = 3  # letters that the beginning of a word needs; all words with fewer would take too long to gather
SEARCH_ASKED = 4  # words of a query that are looked for, the longest ones
SEARCH_RANKED = 600  # texts that are compared: those of the newest sessions, if there are more
SEARCH_LOOKED_AT = 1200  # so many of one session; then what is left of it is passed over
SEARCH_PASSED = 10_000  # texts that are passed over one by one before the search is begun anew behind the session
SEARCH_LOOKS = 3  # how often that is done, and how many times as many texts are compared at most
SEARCH_PER_SESSION = 3  # hits, so that one session does not hide the others
