from till.receipt import receipt


def test_a_receipt_has_the_articles():
    assert receipt([("book", 100), ("toy", 200)]).splitlines()[:2] == ["book 100", "toy 200"]
