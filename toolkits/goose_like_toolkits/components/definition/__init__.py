"""The definition of a component: its config.yaml, parsed and checked."""
