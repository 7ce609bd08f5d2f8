from checking import assert_unchanged, evaluate, list_files, passes_tests, read, run

assert_unchanged("courier/__init__.py", "courier/UPGRADE.md", "tests/test_app.py")
CODE = """
from app.connection import connect
from app.customers import customer_name
from app.health import is_healthy
from app.orders import order_total, place_order
from app.sync import copy_customers, list_names

source, target = connect("a"), connect(url="b")
source.table.update({"/customers/1": {"name": "Ann"}, "/customers/3": {"name": "Cy"}, "/health": {"ok": False}})
"""
values = evaluate(
    CODE,
    "copy_customers(source, target, [1, 2, 3])",
    "list_names(target, [1, 2, 3])",
    "place_order(target, 5, [{'cents': 100, 'count': 3}, {'cents': 1, 'count': 4}])",
    "error_of(lambda: order_total(source, 5)) in ('LookupError', 'NotFound')",
    "[is_healthy(source), is_healthy(target)]",
    "sorted({request[2] for request in source.requests + target.requests if request[0] == 'GET'})",
)
copied, names, total, is_error, health, timeouts = values
assert (copied, names) == (2, ["Ann", "unknown", "Cy"]), f"app.sync copies {copied} of two customers: {names}"
assert (total, is_error, health) == (304, True, [False, False]), f"orders and health: {values}"
assert timeouts == [0.25, 0.5, 2.0, 10.0], f"the requests have timeouts of {timeouts} s"
code = "".join(read(path) for path in list_files("app") if path.endswith(".py"))
assert ".fetch(" not in code and ".send(" not in code and "timeout_ms" not in code, "app/ has calls of version 1"
assert passes_tests("tests"), "the tests fail"
assert run("git", "status", "--porcelain") == "", "there are changes that were not committed"
