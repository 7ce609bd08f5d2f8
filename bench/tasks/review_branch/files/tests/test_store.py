from club.store import Store


def test_find():
    store = Store(":memory:")
    store.add("Ann")
    assert store.find("Ann") == [(1, "Ann")]
    assert store.find("Bob") == []
