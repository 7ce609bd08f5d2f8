"""Components whose work the host does: its models as LLM and as Cerebrum, and the person at its terminal.

They are built on whichever `concopilot` there is, so that components find them to be its kind.
"""
