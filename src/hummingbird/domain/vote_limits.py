"""The bounds of thumbs on notes: what is read of GitLab, how often, what is kept, what is shown. Beside `limits`, by
the same rules."""

# What is read of one note
REACTIONS_READ = 1_000  # emoji: strangers may put any number on a public note
VOTERS_ASKED = 200  # people with a thumb, of whom GitLab is asked what they may do

# When a note is looked at
VOTES_FIRST_S = 600.0  # after it was posted, for the first time
VOTES_YOUNG_S = 2 * 86_400.0  # that a note is young: most people who react do so by then
VOTES_YOUNG_PAUSE_S = 3_600.0  # between two looks at a young note
VOTES_PAUSE_S = 86_400.0  # between two looks at an older one
VOTES_LOOKED_S = 14 * 86_400.0  # that it is looked at at all
VOTES_EVENT_PAUSE_S = 5.0  # between two looks because of events; what comes sooner is seen in the next round

# How gently
HARVEST_S = 300.0  # between two rounds of one process
HARVEST_CAP_S = 3_600.0  # after rounds that GitLab refused
HARVEST_BATCH = 10  # notes that a process takes at once: nobody else looks at them then
HARVEST_NOTES = 60  # of one round
HARVEST_PAUSE_S = 0.5  # between two notes

# What is kept
VOTES_KEPT_S = 90 * 86_400.0
VOTE_SHARDS = 16  # objects of a bucket
VOTE_SHARD_NOTES = 320  # of each, the newest; a file keeps as many as all of them
VOTES_KEPT = VOTE_SHARDS * VOTE_SHARD_NOTES
VOTE_SHARD_BYTES = 4 * 1024 * 1024
VOTE_WORD_CHARS = 200  # of the name of a workflow, a model, a session

# What is shown
VOTES_FOR_A_FIGURE = 5  # with fewer there is no share: two thumbs say nothing
VOTES_TREND_DAYS = 30
VOTES_AGAINST_SHOWN = 50
