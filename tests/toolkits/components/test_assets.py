"""Assets: kept in the session's folder, found again by every form of reference, told to a model in few words."""

import json
import os
import shutil
import uuid

import pytest
from goose_like_toolkits.components.assets.assets import Assets
from goose_like_toolkits.components.assets.packed import packed, unpacked
from goose_like_toolkits.components.assets.words import part, shape
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.errors import SessionError
from goose_like.core.tool import ToolError
from goose_like.sessions.archive import export_archive, import_file
from goose_like.sessions.fork import fork
from goose_like.sessions.index import find_session
from goose_like.sessions.session import Session
from tests.sessions.session_files import write_session

ROWS = {"rows": [{"name": "a", "size": 1}, {"name": "b", "size": [2, 3]}], "total": 2, "a/b": "slash"}
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.binary()
TEXTS = st.text(st.characters(codec=None), max_size=20)
KEYS = TEXTS | st.sampled_from(["$base64", "$$base64"])
CONTENTS = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)


@pytest.fixture
def session():
    session = Session.create()
    yield session
    session.close()


@pytest.fixture
def assets(session):
    return Assets(session)


# --- kept


@given(content=CONTENTS, asset_id=TEXTS)
def test_whatever_is_kept_is_there_again(content, asset_id):
    session = Session.temporary()
    try:
        added = Assets(session).add(content, asset_type="t", asset_id=asset_id)
        again = Assets(session)
        assert again.content(added.asset_id) == content
        assert type(again.content(added.asset_id)) is type(content)
        assert again.all() == [added]
        assert again.damage == []
        again.remove(added.asset_id)
        assert again.all() == []
        assert [*session.assets.iterdir()] == []
    finally:
        session.close()


def test_all_of_an_asset(assets):
    added = assets.add(
        "long ago", asset_type="summary", asset_id=7, asset_name="n", description="d", more={"name": "x", "b": b"1"}
    )
    assert assets.fields("7") == {
        "asset_id": "7",
        "asset_type": "summary",
        "asset_name": "n",
        "description": "d",
        "content_type": "text/plain",
        "name": "x",
        "b": b"1",
        "content": "long ago",
    }
    meta = added.meta()
    assert json.loads(json.dumps(meta)) == meta
    assert "content" not in meta
    assert (meta["size_bytes"], meta["shape"]) == (8, "text of 8 characters")


def test_without_an_id_it_gets_one(assets):
    for nothing in (None, ""):
        assert uuid.UUID(assets.add(1, asset_type="t", asset_id=nothing).asset_id)
    given_ = uuid.uuid4()
    assets.add("x", asset_type="t", asset_id=given_)
    assert assets.content(given_) == "x"


def test_content_types(assets):
    kinds = {"x": "text/plain", b"x": "application/octet-stream", (1,): "<class 'tuple'>"}
    assert {content: assets.add(content, asset_type="t").content_type for content in kinds} == kinds
    assert assets.add({}, asset_type="t", content_type="application/json").content_type == "application/json"


def test_one_takes_the_place_of_another_and_keeps_its_own(assets, session):
    assets.add("one", asset_type="t", asset_id="a")
    assets.add("two", asset_type="t", asset_id="b")
    assets.add(b"three", asset_type="u", asset_id="a")
    assert [(asset.asset_id, asset.kind) for asset in assets.all()] == [("a", "bytes"), ("b", "text")]
    assert assets.content("a") == b"three"
    assert len([*session.assets.iterdir()]) == 4


@pytest.mark.parametrize("asset_id", ["..", "../../x", "a/b", "/etc/x", "a\0b", "x" * 500, " ", "é", "a.json", "."])
def test_no_id_leads_out_of_the_folder(assets, session, asset_id):
    assets.add("x", asset_type="t", asset_id=asset_id)
    assert assets.content(asset_id) == "x"
    assert assets.get(asset_id).asset_id == asset_id
    assert {file.parent for file in session.folder.rglob("*") if file.is_file() and file.name != "events.jsonl"} <= {
        session.folder,
        session.assets,
    }
    assert len([*session.assets.iterdir()]) == 2


CIRCLE: list = []
CIRCLE.append(CIRCLE)
BOMB: list = [0]
for _ in range(30):
    BOMB = [BOMB, BOMB]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"a": [1, {2}]}, r"content\.a\[1\]: a set can't be kept; make text"),
        (float("nan"), "content: the number nan can't be kept"),
        ({"a": object()}, r"content\.a: a object can't"),
        ({(1, 2): 1}, r"content: the key \(1, 2\) is no text"),
        (CIRCLE, "levels deep, or holds itself"),
        (BOMB, "more than 2,000,000 values"),
    ],
)
def test_what_cannot_be_kept(assets, content, told):
    with pytest.raises(ToolError, match=told):
        assets.add(content, asset_type="t", asset_id="a")
    assert assets.all() == []


def test_fields_of_a_wrong_type(assets):
    for field, told in [
        ({"asset_type": 1}, "asset_type of an asset is a text, not 1"),
        ({"asset_type": None}, "asset_type"),
        ({"asset_type": "t", "description": ["d"]}, "description of an asset is a text"),
        ({"asset_type": "t", "asset_id": True}, "asset_id is a text or a whole number, not True"),
        ({"asset_type": "t", "more": {"x": {1}}}, r"asset\.x: a set"),
    ]:
        with pytest.raises(ToolError, match=told):
            assets.add("x", **field)


def test_what_is_too_large(assets, monkeypatch):
    monkeypatch.setattr("goose_like_toolkits.components.assets.assets.LIMIT_BYTES", 10)
    assets.add("x" * 10, asset_type="t")
    with pytest.raises(ToolError, match="the asset has 11 bytes, more than 10; write it to a file"):
        assets.add("x" * 11, asset_type="t")


def test_bytes_within_values_survive_json():
    value = {"a": [b"\xff", (1, None)], 3: {"$base64": "eA=="}, "b": {"$$base64": 1}}
    assert unpacked(json.loads(json.dumps(packed(value)))) == {
        "a": [b"\xff", [1, None]],
        "3": {"$base64": "eA=="},
        "b": {"$$base64": 1},
    }


def test_a_folder_that_cannot_be_written(assets, session):
    session.assets.write_text("in the way")
    with pytest.raises(SessionError, match=r"assets.*can't be written.*free some space"):
        assets.add("x", asset_type="t")


# --- through the session's life


def test_they_outlast_the_process_and_come_along_with_a_fork():
    one = write_session("one", "hello")
    session = Session.resume("one")
    Assets(session).add(ROWS, asset_type="table", asset_id="t")
    Assets(session).add(b"\x00", asset_type="image")
    (session.assets / ".half.json").write_text("{")
    os.symlink("/etc/passwd", session.assets / "link.json")
    session.close()
    again = Session.resume("one")
    assert Assets(again).retrieve("asset://t/content/rows/1/name") == "b"
    copy = fork(find_session("one"), name="two")
    again.close()
    assert [asset.asset_type for asset in Assets(copy).all()] == ["table", "image"]
    Assets(copy).add("other", asset_type="table", asset_id="t")
    copy.close()
    session = Session.resume("one")
    assert Assets(session).content("t") == ROWS
    assert not (copy.assets / "link.json").exists()
    assert not (copy.assets / ".half.json").exists()
    session.close()
    assert one.folder == session.folder


def test_they_come_along_with_an_export(tmp_path):
    write_session("one", "hello")
    session = Session.resume("one")
    Assets(session).add(ROWS, asset_type="table", asset_id="t")
    Assets(session).add(b"\x00\xff" * 9, asset_type="image", asset_id="a/b \ud83d")
    (session.assets / ".half.json").write_text("{")
    os.symlink("/etc/passwd", session.assets / "link.json")
    before = Assets(session).all()
    file = tmp_path / "one.json"
    file.write_text(export_archive(find_session("one")), encoding="utf-8")  # it may be open
    session.close()
    shutil.rmtree(session.folder)
    copy = import_file(file)
    copy.close()
    again = Assets(Session.resume("one"))
    assert again.all() == before
    assert again.content("t") == ROWS
    assert again.content("a/b \ud83d") == b"\x00\xff" * 9
    assert again.damage == []
    assert len([*copy.assets.iterdir()]) == 4


def test_an_export_of_a_session_without_any(tmp_path):
    write_session("one", "hello")
    file = tmp_path / "one.json"
    whole = json.loads(export_archive(find_session("one")))
    for written in (whole, {key: value for key, value in whole.items() if key != "assets"}):
        file.write_text(json.dumps(written))
        copy = import_file(file)
        assert not copy.assets.exists()
        copy.close()


def test_a_fork_of_a_session_without_any():
    write_session("one", "hello")
    copy = fork(find_session("one"))
    assert not copy.assets.exists()
    copy.close()


@pytest.mark.parametrize(
    ("suffix", "harm"),
    [
        (".json", lambda file: file.write_bytes(b"\xff{")),
        (".json", lambda file: file.write_text("[]")),
        (".json", lambda file: file.write_text(file.read_text().replace('"digest":"', '"digest":"../'))),
        ("content", lambda file: file.write_bytes(b"other")),
        ("content", lambda file: file.unlink()),
    ],
)
def test_a_damaged_one_is_told_and_the_rest_work(assets, session, suffix, harm):
    assets.add({"x": 1}, asset_type="t", asset_id="bad")
    assets.add({"x": 2}, asset_type="t", asset_id="good")
    harm(next(file for file in session.assets.glob("bad.*") if (file.suffix == ".json") == (suffix == ".json")))
    with pytest.raises(ToolError, match=r"asset 'bad' is damaged .*add it anew, or remove it"):
        assets.retrieve("asset://bad/content/x")
    assert assets.retrieve("asset://good/content/x") == 2
    assert "good" in [asset.asset_id for asset in assets.all()]
    assets.add({"x": 3}, asset_type="t", asset_id="bad")
    assert (assets.retrieve("asset://bad/content/x"), assets.damage) == (3, [])
    harm(next(file for file in session.assets.glob("bad.*") if (file.suffix == ".json") == (suffix == ".json")))
    assets.remove("bad")
    assert [file.stem for file in session.assets.iterdir()] == ["good", "good"]


def test_damage_names_the_file(assets, session):
    assets.add(1, asset_type="t", asset_id="bad")
    (session.assets / "bad.json").write_text("{")
    assert assets.damage == [f"{session.assets / 'bad.json'}: it can't be read; this asset is left out"]


# --- found


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("asset://t", ROWS),
        ("  asset://t/  ", ROWS),
        ("ASSET://t/asset_type", "table"),
        ("asset://t/content", ROWS),
        ("asset://t/content/rows/0/name", "a"),
        ("asset://t/content/rows/-1/size/1", 3),
        ("asset://t/content/a%2Fb", "slash"),
        ("<|asset://t/content/total|>", 2),
        ('<| {"asset_id": "t", "field_path": ["content", "total"]} |>', 2),
        ({"asset_id": "t", "field_path": ["content", "rows", 1, "name"]}, "b"),
        ({"asset_id": "t", "field_path": None}, ROWS),
        ({"asset_id": "t"}, ROWS),
    ],
)
def test_every_form_of_reference(assets, reference, value):
    assets.add(ROWS, asset_type="table", asset_id="t")
    assert assets.retrieve(reference) == value


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("asset://u", "no asset 'u'; there are: t"),
        ("asset://tt", "no asset 'tt'; did you mean 't'"),
        ("t", "'t' is no reference to an asset; write asset://ID"),
        (5, "'5' is no reference"),
        ("asset://", "is no reference"),
        ({"asset_id": ["t"]}, "is no reference"),
        (
            "asset://t/rows/0",
            "asset://t has no 'rows', only asset_id,.*content; what it holds is at asset://t/content/rows/0",
        ),
        ("asset://t/content/row", "asset://t/content has no key 'row'; did you mean 'rows'. it has: rows, total, a/b"),
        ("asset://t/content/rows/2", "asset://t/content/rows is a list of 2 mappings.*places are 0 to 1, not '2'"),
        ("asset://t/content/rows/name", "its places are 0 to 1, not 'name'"),
        ("asset://t/content/rows/0/name/0", "rows/0/name is text of 1 characters and has no parts; leave '0'"),
        ("asset://t/content/total/x", "total is the number 2 and has no parts"),
    ],
)
def test_where_a_reference_leads_nowhere(assets, reference, told):
    assets.add(ROWS, asset_type="table", asset_id="t")
    with pytest.raises(ToolError, match=told):
        assets.retrieve(reference)


def test_where_there_is_nothing(assets):
    assert (assets.all(), assets.damage) == ([], [])
    with pytest.raises(ToolError, match="no asset 'a'; there are none"):
        assets.get("a")
    with pytest.raises(ToolError, match="no asset 'a'"):
        assets.remove("a")


# --- told


def test_a_result_is_itself_or_an_asset(assets):
    assert assets.as_asset("short", asset_type="result") == "short"
    assert assets.as_asset({"a": 1}, asset_type="result") == '{"a": 1}'
    assert assets.all() == []
    told = assets.as_asset(json.dumps([{"n": at} for at in range(1000)]), asset_type="result", description="d")
    (asset,) = assets.all()
    assert (asset.description, asset.shape) == ("d", "list of 1,000 mappings with n")
    assert len(told) < 1000
    assert f"kept as the asset {asset.asset_id} of type 'result'" in told
    assert '[{"n": 0}, {"n": 1}' in told
    assert f"`get_asset` with asset://{asset.asset_id}, or for a part of it" in told
    assert assets.retrieve(f"asset://{asset.asset_id}/content/999/n") == 999


@pytest.mark.parametrize("text", ["[1, 2, 3", "{" * 5_000, "[" * 5_000 + "]" * 5_000, "words " * 1000, "\ud83d" * 5000])
def test_a_long_text_that_is_no_json_is_kept_as_it_is(assets, text):
    told = assets.as_asset(text, asset_type="t", limit=5)
    assert assets.content(assets.all()[0].asset_id) == text
    assert text[:5] in told


def test_bytes_are_always_an_asset(assets):
    told = assets.as_asset(b"\x00\xff", asset_type="picture")
    assert "2 bytes" in told
    assert assets.content(assets.all()[0].asset_id) == b"\x00\xff"


def test_a_value_in_parts():
    text = "abcdefghij"
    assert part(text) == text
    assert part(text, 0, 4) == "abcd\n[characters 0 to 4 of 10; go on with start=4]"
    assert part(text, 8, 4) == "ij\n[characters 8 to 10 of 10]"
    assert part(text, -5, 10) == text
    assert part(text, 99, 4) == "\n[characters 10 to 10 of 10]"
    assert part([1, b"x"], 0, 100) == '[1, "eA=="]'


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("a\nb", "text of 3 characters in 2 lines"),
        (b"abc", "3 bytes"),
        ([], "empty list"),
        ([1], "list of 1 value"),
        ([{}], "list of 1 mapping"),
        ({}, "empty mapping"),
        ({str(at): at for at in range(9)}, "mapping with 0, 1, 2, 3, 4, 5, 6, 7 and 1 more"),
        (None, "nothing"),
        (True, "the truth value true"),
        (1.5, "the number 1.5"),
    ],
)
def test_shapes(value, told):
    assert shape(value) == told
