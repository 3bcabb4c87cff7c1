"""The adapters' wing: what fulfils the ports. Entered only by assembly.

Owns: the doors to the outside.
May touch: ports, evidence, domain.
Never: one another's rooms (clusters, which sandboxes and sources share, excepted), agent, config, service.
"""
