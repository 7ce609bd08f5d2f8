"""The toolkit `skills`: SKILL.md folders of the project, the person and installed packages."""
