"""One contract for every queue: the list of cases in `suite`, played on each backend by a test file of its own.

Owns: the cases, and how each backend is had.
May touch: the port, the adapters, a real SQS server on loopback, processes of its own.
Never: what only one backend does.
"""
