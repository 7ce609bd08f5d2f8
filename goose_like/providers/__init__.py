"""Model providers: the port, wire formats, presets, prices and the embedded model."""
