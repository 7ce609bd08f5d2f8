"""Terminal output and input: event renderer, streaming Markdown, diffs, charts and the input line."""
