from checking import assert_unchanged, evaluate, passes_tests

assert_unchanged("tests/test_importer.py", "contacts/model.py")
assert passes_tests("tests"), "the tests fail"
CODE = """
from dataclasses import astuple
from contacts.importer import import_contacts

def read(text):
    return [astuple(contact) for contact in import_contacts(text)]

def problem(text):
    try:
        import_contacts(text)
    except ValueError as error:
        return str(error)
"""
values = evaluate(
    CODE,
    r"read('Di Ray <DI@example.org> #b #a #c\n// Ann <a@example.com>\n\nEd <ed@example.org>')",
    r"read('A <a@x.org>\nB <b@x.org>\nC <c@x.org>\nB2 <B@x.org>')",
    r"problem('A <a@x.org>\n\n// two\nno address here')",
    "read('')",
)
expected = [
    [("Di Ray", "di@example.org", ("a", "b", "c")), ("Ed", "ed@example.org", ())],
    [("A", "a@x.org", ()), ("B2", "b@x.org", ()), ("C", "c@x.org", ())],
    "line 4: 'no address here'",
    [],
]
for value, right in zip(values, expected, strict=True):
    is_right = right in (value or "") if isinstance(right, str) else value == right
    assert is_right, f"for other contacts the importer returns {value}, not {right}"
