"""Work orders in line: SQLite and SQS, one contract.

Owns: visibility, groups, dead letters.
May touch: ports, domain.
Never: what an order means.
"""
