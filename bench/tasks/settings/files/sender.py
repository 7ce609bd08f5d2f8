HOST = "mail.example.com"
PORT = 2525


def describe():
    return f"sends to {HOST}:{PORT}"
