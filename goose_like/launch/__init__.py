"""What every front-end needs: a profile, trust, a session in a folder, slash commands, turns, and output."""
