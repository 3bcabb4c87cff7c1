"""Read shell commands without running them, and recognise those that must never run.

`parser` splits a command line into words and simple commands, `values` expands parameters and built-ins, `wrappers`
finds the command behind `sudo`, `xargs`, `sh -c` and the like, `evaluation` follows the script and its variables, and
`dangerous_commands` decides whether one simple command would destroy the machine or its data.
`evaluation.refusal_reason` is the entry point; it never executes anything.
"""
