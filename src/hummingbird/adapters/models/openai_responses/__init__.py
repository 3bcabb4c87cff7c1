"""OpenAI's Responses API, kept stateless: nothing is stored there, everything is sent again (M5).

Owns: input items, encrypted reasoning that is replayed verbatim, the event stream.
May touch: ports, domain, the models room's wire types.
Never: HTTP, prices, state on OpenAI's side.
"""
