"""What every record of spending and every ledger of known failures does, on one machine or in a bucket.

Owns: the cases, and the places that they are played in.
May touch: the stores, servers of its own, other processes.
Never: how one of them keeps things.
"""
