"""Events and orders in line: SQLite and SQS, one contract.

Owns: visibility, groups, dead letters; SQS's queue of events.
May touch: ports, domain, tables.
Never: what an order means.
"""
