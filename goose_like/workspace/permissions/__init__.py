"""Permissions: the policy of modes, the rules of a person, and answers to questions."""
