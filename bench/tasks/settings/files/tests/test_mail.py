import poller
import sender


def test_today():
    assert sender.describe() == "sends to mail.example.com:2525"
    assert poller.describe(50) == "mail.example.com: 50 waiting"
    assert poller.describe(60) == "mail.example.com: 60 waiting, only 50 are fetched"
