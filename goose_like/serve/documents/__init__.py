"""Documents of clients as text: fetched, read in a sandboxed process, and searched for the sources of an answer."""
