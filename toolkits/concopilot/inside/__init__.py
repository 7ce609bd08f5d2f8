"""What runs on the stage and nowhere else: it imports the standard library only."""
