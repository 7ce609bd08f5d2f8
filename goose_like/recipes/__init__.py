"""Recipes: saved tasks with parameters, in the files of goose. A recipe becomes a change of a profile and a message."""
