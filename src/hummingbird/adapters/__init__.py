"""The adapters' wing: what fulfils the ports. Entered only by assembly.

Owns: the doors to the outside.
May touch: ports, evidence, domain.
Never: one another's rooms (clusters and tables, which several share, excepted), agent, config, service.
"""
