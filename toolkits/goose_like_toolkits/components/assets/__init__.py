"""Values that a session keeps for components and models."""
