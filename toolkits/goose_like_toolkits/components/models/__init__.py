"""The models of a profile as what components ask for."""
