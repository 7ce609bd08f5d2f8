"""A dashboard's data and what can be shown beside an answer, for a profile that is served to OpenBB Workspace."""

from .toolkit import OpenBBToolkit as OpenBBToolkit
