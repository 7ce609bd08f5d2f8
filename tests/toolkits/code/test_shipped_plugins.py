"""The plugins that come along, loaded as a kernel loads them, over real files and databases."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from goose_like_toolkits.code.plugins.project import Project
from goose_like_toolkits.code.shipped_plugins._numbers import read_number

from tests import ROOT
from tests.toolkits.code.messy_orders import write
from tests.toolkits.code.test_worker import SHELL, KernelDouble, KernelRun, make_environment, plugin

pytest.importorskip("pandas", reason="the extra `analyst` is not installed")
duckdb = pytest.importorskip("duckdb", reason="the extra `analyst` is not installed")
pytest.importorskip("matplotlib", reason="the extra `analyst` is not installed")

OURS = ROOT / "toolkits/goose_like_toolkits/code/shipped_plugins"
NAMES = ["csv_profile", "plot", "sql"]
PD = "import pandas as pd, numpy as np\n"

Play = Callable[..., KernelRun]


@pytest.fixture
def kernel(tmp_path: Path) -> KernelDouble:
    return KernelDouble(tmp_path)


@pytest.fixture
def work(kernel: KernelDouble) -> Path:
    """The folder that cells run in."""
    return kernel.folder / "work"


def written(name: str) -> dict[str, Any]:
    """Return the content of a plugin's YAML file."""
    return dict(yaml.safe_load((OURS / f"{name}.yaml").read_text()))


def ours(name: str, **config: Any) -> dict[str, Any]:
    return plugin(name, folder=OURS, **{**written(name)["configurations"], **config})


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator["subprocess.Popen[str]"]:
    """A process that has imported the libraries for data, and forks: they take a second of each test."""
    env = make_environment(tmp_path_factory.mktemp("libraries"))
    command = [sys.executable, "-P", str(SHELL)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        yield process


@pytest.fixture
def play(kernel: KernelDouble, libraries: "subprocess.Popen[str]") -> Play:
    """Plays cells in which all three are there."""

    def play(*cells: str, path: Path | None = None, **config: Any) -> KernelRun:
        plugins = [ours(name, **config.get(name, {})) for name in NAMES]
        steps = (kernel.make_setup(*plugins), *cells)
        return kernel.run(*steps, path=path) if path else kernel.fork(libraries, *steps)

    return play


def errors(result: KernelRun) -> list[str]:
    assert None not in [cell["error"] for cell in result.cells], result.cells
    return [cell["error"] for cell in result.cells]


def test_all_shipped_plugins_exist():
    assert sorted(file.stem for file in OURS.glob("*.yaml")) == NAMES
    assert sorted(file.stem for file in OURS.glob("[!_]*.py")) == NAMES


def test_shipped_yaml_matches_python():
    assert Project.read(OURS).diagnostics == ()


def test_shipped_plugins_pass_their_tests(kernel):
    result = kernel.run(
        kernel.make_setup(*map(ours, NAMES)), *({"take": {"type": "test", "plugin": name}} for name in NAMES)
    )
    report = {message["plugin"]: message["tests"] for message in result.list_messages("tested")}
    assert sorted(report) == NAMES, result.messages
    assert [test for name in NAMES for test in report[name] if test["error"]] == []
    assert all(report.values())


LIBRARIES = {
    "sql": ("pandas", "sql('select 1', database='a.db')"),
    "csv_profile": ("pandas", "csv_profile('a.csv')"),
    "plot": ("matplotlib", "plot(1)"),
}


def test_missing_library_is_named(play, work, tmp_path):
    sqlite3.connect(work / "a.db").close()
    for name in ("pandas", "matplotlib", "duckdb"):
        (tmp_path / "none" / name).mkdir(parents=True)
        (tmp_path / "none" / name / "__init__.py").write_text(f"raise ModuleNotFoundError({name!r})")
    result = play(*(call for _, call in LIBRARIES.values()), "sql('select 1')", path=tmp_path / "none")
    libraries = {**LIBRARIES, "sql ": ("duckdb", "")}
    assert errors(result) == [
        f"RuntimeError: {name.strip()} needs {library}, which is not installed here: pip install {library}"
        for name, (library, _) in libraries.items()
    ]


# --- sql


@pytest.fixture
def databases(work: Path) -> None:
    """One of each kind, with the same table of 5,000 rows."""
    with sqlite3.connect(work / "shop.db") as connection:
        connection.execute("create table sales (id integer, town text)")
        connection.executemany("insert into sales values (?, ?)", [(at, f"t{at % 3}") for at in range(5000)])
    with duckdb.connect(str(work / "shop.duckdb")) as connection:
        connection.execute("create table sales as select range as id, 't' || range % 3 as town from range(5000)")


@pytest.mark.parametrize("database", ["shop.db", "shop.duckdb"])
def test_sql_reads_both_engines(play, databases, database):
    result = play(
        f"{PD}of = {{'database': {database!r}}}\n"
        "labels = pd.DataFrame({'town': ['t0', 't1'], 'label': ['Ulm', None]})",
        "sql('select town, count(*) as n from sales group by 1 order by 1', **of).to_dict('list')",
        "sql('select id from sales order by id', limit=3, **of).id.to_list()",
        "labelled = 'select label, count(*) n from sales join l using (town) group by 1'\n"
        "joined = sql(labelled, tables={'l': labels}, **of)\n"
        "sorted(joined.fillna('').itertuples(index=False, name=None))",
        "labels.to_csv('l.csv', index=False)\n"
        "sql('select count(*) n from file_of_labels', tables={'file_of_labels': 'l.csv'}, **of).n[0] == 2",
        "len(sql('select * from sales', limit=5000, **of)), sql.connections.keys().__len__()",
    )
    assert result.values[1:] == [
        "{'town': ['t0', 't1', 't2'], 'n': [1667, 1667, 1666]}",
        "[0, 1, 2]",
        "[('', 1667), ('Ulm', 1667)]",
        "np.True_",
        "(5000, 1)",
    ]
    assert "only the first 3 rows" in result.cells[2]["out"]
    assert "only the first" not in result.cells[5]["out"]


def test_sql_reads_variables_and_files(play):
    result = play(
        f"{PD}frame = pd.DataFrame({{'a': [1, 2, 3]}})\nsql('select sum(a) s from frame').s[0] == 6",
        "frame.to_csv('f.csv', index=False)\nsql(\"select max(a) m from 'f.csv'\").m[0] == 3",
    )
    assert result.values == ["np.True_", "np.True_"]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_sql_reads_other_encodings(play, work, encoding):
    (work / "o'brien.csv").write_bytes("town;sold\nKöln;1\nZürich €;2\n".encode(encoding))
    result = play(
        "sql(\"select town from 'o''brien.csv' where sold = 2\").town[0]",
        "sql('select max(town) t from t', tables={'t': \"o'brien.csv\"}).t[0]",
    )
    assert result.values == ["'Zürich €'"] * 2


WRITES = {
    "shop.db": [
        "insert into sales values (1, 'x')",
        "create table t (a)",
        "attach 'new.db' as n",
        "vacuum into 'new.db'",
        "drop table sales",
    ],
    "shop.duckdb": [
        "insert into sales values (1, 'x')",
        "copy sales to 'new.db'",
        "attach 'new.db' as n",
        "select 1; drop table sales",
        "set threads = 1",
    ],
    "": ["copy (select 1) to 'new.db'", "create table t (a int)", "export database 'new.db'"],
}


@pytest.mark.parametrize("database", WRITES)
def test_sql_writes_nothing(play, work, databases, database):
    before = {file.name: file.read_bytes() for file in work.iterdir()}
    result = play(*(f"sql({query!r}, {database!r})" for query in WRITES[database]))
    for error in errors(result):
        assert error.startswith("ValueError: sql only reads, and this would "), error
        assert "`read_only: false` allows it" in error
    assert {file.name: file.read_bytes() for file in work.iterdir()} == before


@pytest.mark.parametrize("database", ["new.db", "new.duckdb"])
def test_sql_writes_if_allowed(play, database):
    result = play(
        f"sql('create table t (a int)', {database!r})",
        f"sql('insert into t values (1), (2)', {database!r})",
        f"sql('select sum(a) s from t', {database!r}).s[0] == 3",
        sql={"read_only": False},
    )
    assert result.values[-1] == "np.True_"


@pytest.mark.parametrize("database", ["shop.db", "shop.duckdb"])
def test_sql_notices_replaced_file(play, databases, database):
    other = "sqlite3" if database == "shop.db" else "duckdb"
    result = play(
        f"sql('select count(*) n from sales', {database!r}).n[0] == 5000",
        f"import os, {other}\nwith {other}.connect('new') as connection: connection.execute('create table t (a int)')\n"
        f"connection.close(); os.replace('new', {database!r})",
        f"len(sql('select * from t', {database!r}))",
    )
    assert result.values[::2] == ["np.True_", "0"]


def test_sql_errors(play, work, databases):
    (work / "data.csv").write_text("a\n1\n")
    (work / "text.db").write_text("a\n1\n")
    report = errors(
        play(
            "sql('select nam from sales', database='shop.db')",
            "sql('select nam from sales', database='shop.duckdb')",
            "sql('select 1', database='shp.db')",
            "sql('select 1', database='data.csv')",
            "sql('select 1', tables={'a b': 1})",
            "sql('select 1', tables={'t': 1})",
            "sql('select 1', tables={'t': 'dta.csv'})",
            "sql('')",
            "sql('selekt')",
        )
    )
    for error, words in zip(
        report,
        [
            "no such column: nam\nthe tables are: sales (id, town)",
            "the tables are: sales (id, town)",
            "similar: shop.db",
            "is not a database; give it as a table",
            "'a b' can't be the name of a table",
            "the table 't' is a int; give a data frame",
            "no file 'dta.csv'; similar: data.csv",
            "the query is empty",
            "the tables are: none",
        ],
        strict=True,
    ):
        assert words in error


# --- csv_profile

MESSY = """name;when;amount;note;ok
Müller;2024-01-02;1,5;a;yes
MÜLLER ;03.02.2024;2,5;a;no
Kiel;5/17/2024;many;a;yes
Ulm;2024-01-05;N/A;a;no
Ulm;2024-01-05;N/A;a;no
Bonn;2024-01-06;3,5;MÃ¼ller;yes
short;row
Aue;2024-01-07;2,5;a;yes
Ems;2024-01-08;1e6;a;yes
Ahr;2024-01-09;1.002,5;a;yes
"""


UNKNOWN_ENCODING = "unknown 8-bit encoding, read as cp1252"


def test_data_in_shift_jis_is_read_and_an_unknown_encoding_is_called_so(play, work):
    (work / "jp.csv").write_bytes("なまえ;数\nあきら;1\nさくら;2\n".encode("cp932"))
    (work / "ru.csv").write_bytes("Имя;n\nЮлий;1\n".encode("cp1251"))
    result = play(
        "columns, text = csv_profile('jp.csv')\nprint(text)",
        "sql(\"select max(なまえ) m from 'jp.csv'\").m[0]",
        "columns, text = csv_profile('ru.csv')\nprint(text)",
        "columns, text = csv_profile('ru.csv', encoding='cp1251')\nprint(list(columns['column']))",
        "sql(\"from 'ru.csv'\")",
    )
    shown = [cell["out"] for cell in result.cells]
    assert shown[0].startswith("jp.csv: 2 rows, 2 columns; Shift-JIS (cp932), delimiter ';'")
    assert result.values[1] == "'さくら'"
    assert f"; {UNKNOWN_ENCODING}, delimiter" in shown[2]
    assert shown[3].strip() == "['Имя', 'n']"
    assert f"ru.csv: {UNKNOWN_ENCODING}; for another one pass a frame of pandas.read_csv" in shown[4]


@pytest.mark.parametrize(
    ("encoding", "delimiter"), [("cp1252", ";"), ("utf-8", "\t"), ("utf-8-sig", "|"), ("utf-16", ";")]
)
def test_csv_profile_finds_odd_values(play, work, encoding, delimiter):
    (work / "messy.csv").write_bytes(MESSY.replace(";", delimiter).encode(encoding))
    result = play(
        "columns, text = csv_profile('messy.csv')\nprint(text)",
        "columns[['column', 'type', 'missing', 'distinct', 'lowest', 'highest']].values.tolist()",
    )
    shown = {"utf-8-sig": "utf-8", "cp1252": UNKNOWN_ENCODING}.get(encoding, encoding)
    first, *odd = result.cells[0]["out"].splitlines()[:6]
    assert first == (
        f"messy.csv: 9 rows, 5 columns; {shown}, delimiter {delimiter!r}; rows left out, without 5 values: 1"
    )
    assert odd == [
        "- rows that are the same as an earlier one: 1",
        "- name: 1 written in more than one way: 'MÜLLER ' = 'Müller'",
        "- when: dates are written ISO (7), D.M.Y (1), M/D/Y (1)",
        "- amount: 2 missing, some written 'N/A'; 1 not a number: 'many'; numbers are written 1234,56 (4), "
        "1.234,56 (1), 1234.56 (1); 1 far from the others: '1e6'",
        "- note: 1 in a wrong encoding: 'MÃ¼ller'",
    ]
    assert eval(result.values[1]) == [
        ["name", "text", 0, 8, "Ahr", "Ulm"],
        ["when", "date", 0, 8, None, None],
        ["amount", "number", 2, 6, 1.5, 1e6],
        ["note", "text", 0, 2, "MÃ¼ller", "a"],
        ["ok", "boolean", 0, 2, "no", "yes"],
    ]


@pytest.mark.parametrize(
    ("towns", "told"),
    [
        (["Köln", "Koeln", "Bonn"], "1 written in more than one way: 'Koeln' = 'Köln'"),
        (["München", "Muenchen", "MÜNCHEN"], "'Muenchen' = 'MÜNCHEN' = 'München'"),
        (["Köln", "Koln", "Koeln"], "'Koeln' = 'Koln' = 'Köln'"),
        (["Weißer Weg", "Weisser  Weg"], "'Weisser  Weg' = 'Weißer Weg'"),
        (["Café", "Cafe", "Cafe\u0301"], "'Cafe' = 'Cafe\u0301' = 'Café'"),
        (["Århus", "Aarhus", "Malmø", "Malmoe"], "2 written in more than one way"),
        (["Koln", "Koeln", "Bonn", "Born"], ""),
        (["Ulm", "Bonn", "Total"], "1 as in a total row: 'Total'"),
        (["Ulm", "Bonn", "Gesamtsumme:"], "1 as in a total row: 'Gesamtsumme:'"),
    ],
)
def test_csv_profile_finds_spellings_and_totals(play, work, towns, told):
    (work / "t.csv").write_text("town\n" + "".join(f"{town}\n" for town in towns * 2), "utf-8")
    shown = play("print(csv_profile('t.csv')[1])").cells[0]["out"]
    assert (told.replace("1 as", "2 as") in shown) if told else ("- town" not in shown)


@pytest.mark.parametrize(
    ("amounts", "is_total"),
    [([10, 20, 30, 40, 100], True), ([1.5, 2.25, 3, 4, 10.75], True), ([1, 2, 3], False), ([5, 5, 5, 5, 21], False)],
)
def test_csv_profile_finds_a_sum_without_a_word(play, work, amounts, is_total):
    (work / "t.csv").write_text("name,amount\n" + "".join(f"n{at},{n}\n" for at, n in enumerate(amounts)))
    shown = play("print(csv_profile('t.csv')[1])").cells[0]["out"]
    assert ("1 is the sum of all others, as in a total row" in shown) == is_total


def test_sql_keeps_long_numbers_exact(play, work):
    rows = "id,n\n12345678901234567890,1\n12345678901234567891,2\n,3\n"
    (work / "ids.csv").write_text(rows)
    with sqlite3.connect(work / "ids.db") as connection:
        connection.execute("create table t (id integer)")
        connection.executemany("insert into t values (?)", [(9007199254740993,), (None,)])
    result = play(
        f"{PD}sql(\"from 'ids.csv' order by n\").id.to_list()",
        "sql('select id, sum(n) s from t group by 1 order by s;', tables={'t': 'ids.csv'}).to_dict('list')",
        "frame = sql(\"from 'ids.csv' -- all\")\nint(sql('select count(distinct id) c, max(id) m from frame').m[0])",
        "sql('select * from t', database='ids.db').id.to_list()",
        'sql(\'select 170141183460469231731687303715884105727 as "a ""b", 2 x\').iloc[0, 0]',
        "sql('select sum(n) s from (values (1), (2)) t(n)').s.dtype.kind",
    )
    assert result.values == [
        "[12345678901234567890, 12345678901234567891, None]",
        "{'id': [12345678901234567890, 12345678901234567891, None], 's': [1.0, 2.0, 3.0]}",
        "12345678901234567891",
        "[9007199254740993, None]",
        "170141183460469231731687303715884105727",
        "'f'",
    ]


def test_csv_profile_reads_parquet(play, work):
    duckdb.sql("select range as a, null as b, date '2024-01-01' as c from range(9)").write_parquet(
        str(work / "p.parquet")
    )
    result = play("columns, text = csv_profile('p.parquet')\n[text, *columns['type']]")
    text, *types = eval(result.values[0])
    assert text == "p.parquet: 9 rows, 3 columns; Parquet\n- b: 9 missing\n- c: always the same"
    assert types == ["number", "empty", "date"]


def test_csv_profile_reads_beginning_of_large_file(play, work):
    (work / "large.csv").write_text("a,b\n" + "1,ä\n" * 400_000)
    result = play("columns, text = csv_profile('large.csv')\ntext.splitlines()[0]", csv_profile={"limit_mb": 1})
    assert eval(result.values[0]) == (
        "large.csv: 199,999 rows, 2 columns; utf-8, delimiter ','; only the first 1 MB of it were read"
    )


REPORT = """Sales report, first quarter;;;;
Exported by Müller
;;;;
Region;Amount;Balance;When;Code
Nord;1.234,56 €;(1.000,00);01.02.2024;01234
Süd;1,234.56;500-;02.02.2024;12345
West;$ 99.00;-12,50;03.02.2024;00501
Ost;1.000;12;04.02.2024;99999
"""


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le"])
def test_csv_profile_reads_reports(play, work, encoding):
    (work / "report.csv").write_bytes(REPORT.encode(encoding))
    result = play(
        "columns, text = csv_profile('report.csv')\nprint(text)",
        "columns[['column', 'type', 'lowest', 'highest']].values.tolist()",
        "import re, pandas as pd; skip = int(re.search(r'skiprows=(\\d+)', text)[1])\n"
        f"list(pd.read_csv('report.csv', sep=';', encoding={encoding!r}, skiprows=skip))",
    )
    shown = UNKNOWN_ENCODING if encoding == "cp1252" else encoding
    assert result.cells[0]["out"].splitlines() == [
        f"report.csv: 4 rows, 5 columns; {shown}, delimiter ';'; header in line 4 (skiprows=3) below "
        "'Sales report, first quarter'",
        "- Amount: numbers are written 1234.56 (1), 1,234.56 (1), 1.234,56 (1); 1 ambiguous, such as '1.000'; "
        "units: none (2), $ (1), € (1)",
        "- Balance: numbers are written 1234 (2), 1.234,56 (1), 1234,56 (1); "
        "negative numbers are written (12) (1), -12 (1), 12- (1)",
        "- Code: 2 with leading zeros: '00501', '01234'",
    ]
    assert eval(result.values[1])[1:3] == [["Amount", "number", 1.0, 1234.56], ["Balance", "number", -1000.0, 12.0]]
    assert eval(result.values[2]) == ["Region", "Amount", "Balance", "When", "Code"]


def test_csv_profile_reads_workbooks(play, work):
    import pandas as pd

    rows = [["Sales", "", ""], [None] * 3, [None, "region", "sold"], [None, "Nord", 1234.5], [None, "nord ", "(7)"]]
    orders = pd.DataFrame(rows)
    with pd.ExcelWriter(work / "sales.xlsx") as book:
        pd.DataFrame([["a"]]).to_excel(book, sheet_name="Notes", header=False, index=False)
        orders.to_excel(book, sheet_name="Orders", header=False, index=False)
    result = play(
        "csv_profile('sales.xlsx')[1]",
        "sql('select region, sold from t', tables={'t': 'sales.xlsx'}).values.tolist()",
        "csv_profile('sales.xlsx', sheet='Other')",
        "sql(\"from 'sales.xlsx'\")",
        "import os; os.environ['HOME'] = '/proc/none'; sql(\"from 'sales.xlsx'\")",  # as in the sandbox
    )
    assert eval(result.cells[0]["value"]).splitlines() == [
        "sales.xlsx: 2 rows, 2 columns; Excel, sheet 'Orders' (others: 'Notes'); header in line 3 (skiprows=2) "
        "below 'Sales'",
        "- region: 1 written in more than one way: 'Nord' = 'nord '",
        "- sold: negative numbers are written (12) (1)",
    ]
    assert eval(result.cells[1]["value"]) == [["Nord", "1234.5"], ["nord ", "(7)"]]
    assert result.cells[2]["error"] == "ValueError: 'sales.xlsx' has no sheet 'Other'; its sheets are: Notes, Orders"
    assert all("give it as a table" in result.cells[number]["error"] for number in (3, 4))


def test_csv_profile_finds_rare_values_among_many(play, work):
    with (work / "many.csv").open("w") as file:
        file.write("id,name,price\n")
        file.writelines(f"{n},customer {n}{'Ã¤' if n == 77 else ''},{n}.5\n" for n in range(120_000))
        file.write("x,same,1\n" * 2)
    result = play(
        "columns, text = csv_profile('many.csv')\nprint(text)", "columns[['lowest', 'highest']].values.tolist()"
    )
    assert result.cells[0]["out"].splitlines() == [
        "many.csv: 120,002 rows, 3 columns; utf-8, delimiter ','",
        "- rows that are the same as an earlier one: 1",
        "- id: 2 not a number: 'x'",
        "- name: 1 in a wrong encoding: 'customer 77Ã¤'",
        "Estimated from a sample, except odd values: id, name, price",
    ]
    assert eval(result.values[1])[::2] == [[0.0, 119999.0], [0.5, 119999.5]]


@pytest.mark.parametrize("count", [3, 60_000])
@pytest.mark.parametrize("first", [12345678901234567890, 2**53 + 1, 10**30])
def test_csv_profile_keeps_each_digit_of_an_id(play, work, first, count):
    lines = "".join(f"{n},-{n},1.5\n" for n in range(first, first + count))
    (work / "ids.csv").write_text(f"id,minus,price\n{lines}")
    result = play("columns, text = csv_profile('ids.csv')", "columns[['lowest', 'highest']].values.tolist()")
    last = first + count - 1
    assert eval(result.values[1]) == [[first, last], [-last, -first], [1.5, 1.5]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1234", 1234),
        ("1.5e-3", 0.0015),
        ("1,234,567.5", 1234567.5),
        ("1.234.567,5", 1234567.5),
        ("1 234,5", 1234.5),
        ("1'234", 1234),
        ("€ -3", -3),
        ("-$3", -3),
        ("(12 %)", -12),
        ("12,5-", -12.5),
        ("+.5", 0.5),
        ("−7", -7),  # noqa: RUF001
    ],
)
def test_numbers_are_read(text, expected):
    assert read_number(text).to_value(False) == expected
    assert read_number("1,234").to_value(True) == 1.234
    assert read_number("1.234").to_value(True) == 1234


@pytest.mark.parametrize(
    "text", ["", "-", "01.02.2024", "1-2", "--5", "(5", "5)", "+49 170 1234567", "1.2.3", "A5", "5 apples", "$5 €"]
)
def test_other_texts_are_no_numbers(text):
    assert read_number(text) is None


def test_csv_profile_errors(play, work):
    (work / "orders.csv").write_text("\n\n")
    (work / "head.csv").write_text("a,b\n")
    (work / "image.csv").write_bytes(b"\x89PNG\0\0")
    (work / "quote.csv").write_text('a,b\n"' + "1,2\n" * 40_000)
    report = play(
        "csv_profile('orders.cs')",
        "csv_profile('orders.csv')",
        "csv_profile('image.csv')",
        "csv_profile('quote.csv')",
        "csv_profile('.')",
        "csv_profile('head.csv')[0].type.to_list()",
    )
    assert [cell["error"] for cell in report.cells] == [
        "FileNotFoundError: no file 'orders.cs'; similar: orders.csv",
        "ValueError: 'orders.csv' is empty",
        "ValueError: 'image.csv' is not text; csv_profile reads CSV, TSV, Excel and Parquet",
        "ValueError: 'quote.csv' can't be read as CSV: field larger than field limit (131072); is a quote left open?",
        "FileNotFoundError: no file '.'",
        None,
    ]
    assert report.cells[-1]["value"] == "['empty', 'empty']"


# --- plot

FRAME = f"""{PD}df = pd.DataFrame({{
    "day": pd.date_range("2024-01-01", periods=60), "town": ["Kiel", "Bonn", "Ulm"] * 20,
    "sold": range(60), "cost": np.arange(60) ** 2}})
"""
PICTURES = {
    "plot(df)": "sold, cost over day",
    "plot(df, y='sold', by='town')": "sold over day by town",
    "plot(df, 'bar', x='town')": "sum of sold, cost by town",
    "plot(df, 'bar', by='town', y='sold')": "sum of sold by town",
    "plot(df, 'bar', x='day', y='sold', by='town')": "sold by day and town (the 30 largest of 60)",
    "plot(df[['town']], 'bar')": "how many by town",
    "plot(df, 'hist', y='cost')": "cost",
    "plot(df, 'scatter', x='sold', y='cost')": "cost over sold",
    "plot(df[['sold', 'cost']], 'scatter')": "cost over sold",
    "plot(df, 'box', y='cost', by='town')": "cost by town",
    "plot(df.groupby('town').sold.sum())": "sold over town",
    "plot(df.groupby('town').sold.sum(), 'bar', title='Per town')": "Per town",
}


def test_plot_draws_each_kind(play):
    code = "; ".join(f"paths.append({call})" for call in PICTURES)
    result = play(f"{FRAME}paths = []; {code}", "[open(path, 'rb').read()[:8] for path in paths]", "paths")
    assert set(eval(result.values[1])) == {b"\x89PNG\r\n\x1a\n"}
    report = result.list_messages("artifact")
    assert [message["description"] for message in report] == list(PICTURES.values())
    assert [message["file"] for message in report] == eval(result.values[2])
    assert {message["kind"] for message in report} == {"image"}
    assert "pyplot" not in result.cells[0]["out"]


def test_plot_saves_the_named_file(play, work):
    (work / "out").mkdir()
    result = play(
        f"{FRAME}plot(df, file_name='sold.png')",
        "plot(df, title='All', file_name='out/sold per day.svg')",
        "plot(df, file_name='plain')",
        "plot(df, file_name='sold.csv')",
        "plot(df, file_name='none/sold.png')",
    )
    assert [cell["value"] for cell in result.cells[:3]] == ["'sold.png'", "'out/sold per day.svg'", "'plain.png'"]
    assert (work / "sold.png").read_bytes() == (work / "plain.png").read_bytes()
    assert b"<svg" in (work / "out/sold per day.svg").read_bytes()
    artifacts = result.list_messages("artifact")
    assert [Path(each["file"]).name[-16:] for each in artifacts[1:2]] == ["sold_per_day.png"]
    assert [Path(each["file"]).read_bytes()[:4] for each in artifacts] == [b"\x89PNG"] * 3
    assert result.cells[3]["error"] == "ValueError: a chart can't be saved as .csv; use .png, .svg or .pdf"
    assert result.cells[4]["error"].startswith("FileNotFoundError: ")


def test_plot_chooses_columns(play):
    """In pixels: bars of which one is far higher, and a title that makes the picture another one."""
    result = play(
        f"{FRAME}import matplotlib.image\n"
        "def blue(rows): return [int((matplotlib.image.imread(plot(pd.DataFrame({'a': ['x', 'y'], 'n': rows}), 'bar'))"
        "[..., :3] @ [-1, 0, 1] > .3)[:, at].sum()) for at in (320, 760)]",
        "low, high = blue([1, 10]); high > 5 * low",
        "left, right = blue([10, 10]); abs(left - right) < 3",
    )
    assert result.values[1:] == ["True", "True"]


def test_plot_errors(play):
    report = play(
        FRAME,
        "plot(df, 'pie')",
        "plot(df, x='dy')",
        "plot(df, y='town')",
        "plot(df[:0])",
        "plot([1, 2])",
        "plot(df[['town']])",
        "plot(df[['sold']], 'scatter')",
        "plot(pd.DataFrame({'a': [np.nan]}))",
        "plot(pd.DataFrame([[1, 2]], columns=['a', 'a']))",
    )
    assert [cell["error"] for cell in report.cells[1:]] == [
        "ValueError: no kind 'pie' of chart; the kinds are: line, bar, hist, scatter, box",
        "ValueError: the data frame has no column 'dy'; did you mean: day?",
        "ValueError: 'town' has no numbers (str); try pd.to_numeric first",
        "ValueError: the data frame is empty; there is nothing to draw",
        "ValueError: plot draws a data frame, and this is a list",
        "ValueError: too few columns of numbers for line; the columns are: town",
        "ValueError: too few columns of numbers for scatter; the columns are: sold",
        "ValueError: there is no value in 'a'; there is nothing to draw",
        "ValueError: 'a' is the name of two columns; rename one",
    ]
    assert report.list_messages("artifact") == []


# --- the page


def test_examples_in_docs_run(play, work, databases):
    """In their order, in one kernel."""
    write(work / "orders.csv")
    with sqlite3.connect(work / "shop.db") as connection:
        connection.execute("create table customers (town text, owner text)")
        connection.executemany("insert into customers values (?, ?)", [("Berlin", "Ada"), ("Köln", "Bo")])
    page = (ROOT / "docs/analyst.md").read_text()
    cells = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    result = play(*cells, "list(known.itertuples(index=False, name=None))", "path")
    rows = eval(result.values[-2])
    path = Path(eval(result.values[-1]))
    assert {(town, owner) for town, owner, _ in rows} == {("Berlin", "Ada"), ("Köln", "Bo")}
    assert path.read_bytes()[:4] == b"\x89PNG"
