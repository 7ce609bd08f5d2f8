"""OpenBB's copilot protocol: its requests, its event stream and its client-side tools.

A request passes `endpoints`, `request` (JSON to a `query`), `history` (with `state`, `prompt` and `client_tools`: the
conversation so far), the shared `turn`, and `response` (events to frames, with `citations` and `artifacts`).
"""
