"""The boss flow: work that outlasts one conversation, by a planner, a controller, executors and memory in files."""
