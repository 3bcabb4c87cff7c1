"""What bounds the dashboard. The relations between these are checked by a test."""

RUNS_SHOWN = 100  # sessions on the first page
SEARCH_SHOWN = 20
FAILURES_SHOWN = 100
FAILURE_PROJECTS = 500
TREND_DAYS = 30
COST_DAYS = 30

ENTRY_SHOWN_CHARS = 4_000  # of one text on the page of a session; the whole is a page of its own
ENTRY_CHARS = 2_000_000  # of one text on that page
ROWS_AT_ONCE = 100  # written before anybody else has a turn
PAGES_AT_ONCE = 4  # of which a piece is made at the same time
PAGES_OPEN = 32  # pages of sessions that are being sent: each has a whole journal in memory
PAGE_S = 120.0  # that a page may take until it is sent, however slowly somebody reads
ANSWERS_HELD = 64  # of which it is known how their quotations fared
QUOTES_LOOKED_FOR = 2_000  # lines of an answer that are looked for in what was fetched

LIVE_VIEWERS = 500
LIVE_PAUSE_S = 0.25  # between two pieces of news to one viewer, at least
LIVE_WRITES_PER_S = 100  # to all viewers together: with more of them, each hears less often
LIVE_FEW = 10  # viewers who are told without asking what it costs
LIVE_SHARE = 0.02  # of the process' own CPU, that telling more of them may take
LIVE_WRITE_CPU_S = 0.0002  # that telling one takes, as measured
LIVE_LATEST_S = 10.0  # that news may wait for it
LIVE_ALIVE_S = 20.0  # of silence, then a comment: proxies end what says nothing
LIVE_BEHIND_BYTES = 16 * 1024 * 1024  # of news kept for all who are behind; who lacks more loads the page anew
LIVE_PIECE_BYTES = 64 * 1024  # of news to one viewer, before the next waits for it to be read
LIVE_READS_AT_ONCE = 4  # journals that are looked at for live pages
LIVE_BACKLOG = 500  # entries that a page may lack when it begins to follow; more, and it is loaded anew
LIVE_SENTENCES = 200  # about sessions, for their pages
LIVE_LOOK_S = 3.0  # between two looks at a session that may run in another process
LIVE_LOOK_CAP_S = 30.0  # where look after look shows nothing new

VISIT_S = 12 * 3600  # that a cookie is good for
TOKEN_CHARS = 16  # of a token, at least
WRONG_TOKENS = 10  # in a minute, from all visitors together
FORM_BYTES = 512 * 1024  # of a form that is sent
MESSAGE_CHARS = 32_000  # of what is said on a page

FILES_SHOWN = 2_000  # of a sandbox
FILE_BYTES = 64 * 1024 * 1024  # of one file of it that is given away
FILES_S = 60.0  # that looking into a sandbox may take
LOOKS_AT_ONCE = 2  # sandboxes that are started for somebody who looks at files
