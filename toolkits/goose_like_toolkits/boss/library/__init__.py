"""The code library of a boss: one Python file that grows by definitions, its outline, and the code that uses it."""
