"""The toolkit `openbb`: data of a dashboard, and tables, charts and pages to show with an answer."""

from .toolkit import OpenBBToolkit as OpenBBToolkit
