"""What a config.yaml says: who a component is, what it offers, how it is configured."""
