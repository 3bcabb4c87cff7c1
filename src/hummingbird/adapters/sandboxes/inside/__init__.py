"""The program that works inside a sandbox. It is sent there as text and never runs on our side.

Owns: one conversation at a time: run a command, write a file, read a file; and ending whatever was started.
May touch: the standard library of Python 3.8, since it runs with the python3 of the sandbox's image.
Never: anything of ours outside this package.
"""
