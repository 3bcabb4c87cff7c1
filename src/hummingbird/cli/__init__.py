"""Commands, thin.

Owns: arguments, exit codes, printing.
May touch: assembly and below, lab for `demo` and `lab`.
Never: adapters.
"""
