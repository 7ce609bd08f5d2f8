"""Work on many inputs."""
