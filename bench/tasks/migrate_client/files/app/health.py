def is_healthy(client):
    state = client.fetch("/health", timeout_ms=250)
    return bool(state and state.get("ok"))
