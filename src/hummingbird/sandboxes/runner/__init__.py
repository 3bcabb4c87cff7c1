"""The program that works inside a sandbox: it runs a command, writes a file or reads a file for one request.

It is sent into the sandbox as text and runs with the python3 of the sandbox's image. So its modules use only the
standard library of Python 3.8, and import nothing of ours outside this package. Our side imports only its constants and
the frame format.
"""
