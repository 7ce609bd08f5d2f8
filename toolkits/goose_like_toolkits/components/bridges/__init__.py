"""The profile's models as ConCopilot's LLM and cerebrum; each request is one call into the core's exchange or view."""
