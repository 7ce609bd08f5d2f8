"""The toolkit `hooks`: commands and addresses that judge or follow a session, in the format that other agents use.

It stands on the hook points of toolkits: `toolkit.py` turns each of them into an event, `engine.py` runs the handlers
that match it, `reply.py` reads their answers. `sources.py` says whose hooks run.
"""
