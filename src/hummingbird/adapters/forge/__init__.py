"""Write side of GitLab: merge requests, notes, threads, access.

Owns: what is read and written with the token that writes, retries, markers, the sanitizer of notes.
May touch: ports, domain, orchestrator tokens, HTTP.
Never: sources, tool tokens.
"""
