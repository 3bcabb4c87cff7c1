"""The attempts: small programs that try to get out of a sandbox, or to use up the machine it is on.

Owns: the table. One module a subject.
May touch: `tests.security.attempt`.
Never: this machine; an attempt is text that runs in a sandbox.
"""
