HOST = "mail.example.com"
LIMIT = 50


def describe(waiting):
    if waiting > LIMIT:
        return f"{HOST}: {waiting} waiting, only {LIMIT} are fetched"
    return f"{HOST}: {waiting} waiting"
