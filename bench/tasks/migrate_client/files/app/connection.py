from courier import Client

URL = "https://shop.example.com"


def connect(url=URL):
    return Client(url)
