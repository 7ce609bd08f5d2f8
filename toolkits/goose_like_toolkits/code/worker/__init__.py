"""Code that runs inside the kernel process; it imports the standard library and IPython only."""

READY_LINE = b"the kernel is ready\n"
"""Line that the process prints when the host may connect."""

COMM_TARGET = "goose_like"
"""Name of the Jupyter comm between the host and the plugin manager of the kernel."""
