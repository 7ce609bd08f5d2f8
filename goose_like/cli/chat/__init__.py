"""The interactive session: input loop, slash commands and status line."""
