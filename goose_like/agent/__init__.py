"""The loop and its assembly: exchange, limits, reminders, toolkit base class and subagents."""
