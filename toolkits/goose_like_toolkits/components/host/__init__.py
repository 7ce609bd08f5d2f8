"""The host side of components: find them, start their worker, call commands, and keep assets."""
