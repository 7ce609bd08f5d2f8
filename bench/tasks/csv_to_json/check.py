from checking import assert_unchanged, read_json

assert_unchanged("people.csv")
people = read_json("people.json")
expected = [{"name": "Ann", "age": "31"}, {"name": "Bob", "age": "27"}]
is_list = isinstance(people, list) and all(isinstance(person, dict) for person in people)
assert is_list, f"people.json is no list of objects: {people}"
texts = [{key: str(value) for key, value in person.items()} for person in people]
assert texts == expected, f"people.json has {people}"
