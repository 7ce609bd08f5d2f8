import pytest

from app.connection import connect
from app.customers import customer_name
from app.health import is_healthy
from app.orders import order_total, place_order


@pytest.fixture
def client():
    client = connect()
    client.table.clear()
    client.table["/customers/1"] = {"name": "Ann"}
    return client


def test_customer_name(client):
    assert customer_name(client, 1) == "Ann"
    assert customer_name(client, 2) == "unknown"


def test_orders(client):
    assert place_order(client, 7, [{"cents": 150, "count": 2}]) == 300
    with pytest.raises(LookupError):
        order_total(client, 8)


def test_health(client):
    assert not is_healthy(client)
    client.table["/health"] = {"ok": True}
    assert is_healthy(client)
