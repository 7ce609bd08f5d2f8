def customer_name(client, number):
    """Return the name, or "unknown"."""
    customer = client.fetch(f"/customers/{number}", timeout_ms=500)
    if customer is None:
        return "unknown"
    return customer["name"]
