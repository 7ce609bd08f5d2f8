"""What a command changed of the assets, in the process of the components: noticed in place, and at little cost."""

from tests.toolkits.components.component_programs import Stage, stage

__all__ = ["stage"]  # a fixture

SHARED = """
import datetime, pathlib, tracemalloc, uuid
from stage.shared_assets import SharedAssets
from concopilot.framework.asset import Asset
from concopilot.util import ClassDict
def shared(**contents):
    made = SharedAssets()
    for key, content in contents.items():
        made[key] = Asset(asset_type="t", asset_id=key, content=content)
    return made
def changed(made):
    told = made.changes()
    return [sorted(put["id"] for put in told["put"]), told["removed"]]
class Canvas:
    pass
"""


def test_a_change_in_place_is_noticed_whatever_it_is(stage: Stage) -> None:
    program = (
        SHARED
        + """
def content():
    return {"rows": [[1, 2], [3, 4]], "flag": 1, "half": 0.5, "name": "n", "raw": bytearray(b"ab"), "none": None,
            "both": (1, [2]), "set": {1, 2}, "day": datetime.date(2020, 1, 1), "file": pathlib.Path("a"),
            "held": Canvas(), "inner": {"a": {"b": [0]}}, "bytes": b"x", "nan": float("nan")}
changes = {
    "a row": lambda it: it["rows"].append([5]), "an entry": lambda it: it["rows"][1].__setitem__(0, 9),
    "the order": lambda it: it["rows"].reverse(), "a truth": lambda it: it.update(flag=True),
    "a fraction": lambda it: it.update(flag=1.0), "a key": lambda it: it.update(more=None),
    "a key less": lambda it: it.pop("none"), "another key": lambda it: it.update(noun=it.pop("name")),
    "bytes": lambda it: it["raw"].extend(b"c"), "other bytes": lambda it: it["raw"].__setitem__(0, 0),
    "in a tuple": lambda it: it["both"][1].append(3), "a set": lambda it: it["set"].add(3),
    "a day": lambda it: it.update(day=datetime.date(2020, 1, 2)), "a path": lambda it: it.update(file="b"),
    "an object": lambda it: it.update(held=object()), "deep": lambda it: it["inner"]["a"]["b"].__setitem__(0, False),
    "a text": lambda it: it.update(name="m"), "nothing": lambda it: it.update(name=None),
    "another kind": lambda it: it.update(rows={"0": 1}), "a text for bytes": lambda it: it.update(bytes="x"),
}
missed = []
for name, change in changes.items():
    held = content()
    made = shared(one=held, other=content())
    made.changes()
    if changed(made) != [[], []]:
        missed.append(f"{name}: changed before it was")
    change(made["one"]["content"])
    if changed(made) != [["one"], []] or changed(made) != [[], []]:
        missed.append(name)
result = missed
"""
    )
    assert stage.ours(program) == []


def test_what_is_told_alike_is_no_change(stage: Stage) -> None:
    program = (
        SHARED
        + """
made = shared(a={"x": 1, "y": [1, (2, 3)], "raw": b"ab", "held": Canvas(), "text": "long enough" * 9})
result = [changed(made)]
one = made["a"].content
one["x"] = one.pop("x")
one["y"] = [1, [2, 3]]
one["raw"] = bytearray(b"ab")
one["held"] = Canvas()
one["text"] = "".join(["long enough"] * 9)
result.append(changed(made))
made["a"] = Asset(asset_type="t", asset_id="a", content=dict(one))
result.append(changed(made))
made["a"].description = "new"
result.append(changed(made))
del made["a"]
result.append(changed(made))
"""
    )
    assert stage.ours(program) == [[["a"], []], [[], []], [[], []], [["a"], []], [[], ["a"]]]


def test_a_large_asset_is_not_written_again_by_each_command(stage: Stage) -> None:
    program = (
        SHARED
        + """
made = shared(text="x" * 5_000_000, raw=bytes(5_000_000), rows=[[number] * 50 for number in range(10_000)],
              records=[{"name": f"n{number}", "sizes": [number]} for number in range(10_000)])
made.changes()
tracemalloc.start()
told = made.changes()
result = [told, tracemalloc.get_traced_memory()[1] < 100_000]
"""
    )
    assert stage.ours(program) == [{"put": [], "removed": []}, True]


def test_an_asset_that_was_loaded_is_the_hosts_until_it_is_changed(stage: Stage) -> None:
    program = (
        SHARED
        + """
class Host:
    def call(self, method, **params):
        return {"asset_type": "t", "asset_id": params["id"], "content": {"rows": [1], "raw": {"$base64": "YWI="}}}
wire.connect(Host())
made = SharedAssets()
made.learn(["a", "b"])
held = made["a"].content
result = [changed(made)]
held.rows.append(2)
result += [changed(made), sorted(made.waiting)]
made.learn(["b"])
result += [changed(made), "a" in made]
"""
    )
    assert stage.ours(program) == [[[], []], [["a"], []], ["b"], [[], []], False]
