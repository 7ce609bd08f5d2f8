"""User configuration: folders, profiles, YAML with line numbers, API keys and trust."""
