"""Language models: the APIs of Anthropic, Google and OpenAI, replay of recorded sessions, and a model without an LLM.

`registry.py` turns a name such as `anthropic:claude-…` into a model. The model encodes a request, sends it and decodes
the answer. The agent handles retries, budgets and the journal.
"""
