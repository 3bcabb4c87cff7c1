"""Store sessions, large objects, known failures, votes, grants and spending.

Most of them come in two forms: files of one machine (SQLite or folders), and a bucket that several hosts share. The
protocols are in `hummingbird.core.protocols.storage` and `hummingbird.core.protocols.sessions`.
"""
