"""The toolkit `otel`: traces and metrics of OpenTelemetry."""
