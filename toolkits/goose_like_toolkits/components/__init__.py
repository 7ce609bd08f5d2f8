"""ConCopilot components: packages that offer commands, with resources, assets and messages."""
