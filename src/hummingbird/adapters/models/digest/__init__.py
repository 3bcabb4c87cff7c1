"""`digest`, the model without a model: rules that plan a failure analysis and write a plain report (M8).

Owns: roles of tools, what a conversation says, the next calls, the report.
May touch: ports, domain, evidence, the shared parts of adapters.models.
Never: network, keys, memory between two requests.
"""
