"""HTTP server: code that all protocols share, and one sub-package for each protocol.

Start of a server: `command` (options), `settings`, `process` (port, workers), `app` (routes), `service` (models).
A request: `middleware` (origin, log), a protocol's endpoint, `middleware` (token, body, query slots), the protocol's
parser (with `body`: JSON, and `state`: signed work of earlier requests), `turn` (runs the exchange and streams the
response). End of a server: `shutdown`.
"""
