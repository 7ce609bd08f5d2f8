"""The memory of a boss: plan, log and other files, shown to the controller within a token budget."""
