"""The worker process of components: ConCopilot's own framework, confined, with a connection to goose_like.

Files of this package import nothing of goose_like: they run in the sandbox, as the package `goose_like_worker`.
"""
