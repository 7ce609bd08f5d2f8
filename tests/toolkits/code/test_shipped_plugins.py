"""The plugins that come along, loaded as a kernel loads them, over real files and databases."""

import re
import sqlite3
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from goose_like_toolkits.code.plugins.project import Project
from goose_like_toolkits.code.shipped_plugins._numbers import read_number

from tests import ROOT
from tests.loopback import Response, raw, threaded
from tests.toolkits.code.messy_orders import write
from tests.toolkits.code.test_worker import KernelDouble, KernelRun, plugin

pytest.importorskip("pandas", reason="the extra `analyst` is not installed")
duckdb = pytest.importorskip("duckdb", reason="the extra `analyst` is not installed")
pytest.importorskip("matplotlib", reason="the extra `analyst` is not installed")

OURS = ROOT / "toolkits/goose_like_toolkits/code/shipped_plugins"
NAMES = ["anomalies", "csv_profile", "fuzzy_join", "plot", "sql", "web_table"]
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


@pytest.fixture
def play(kernel: KernelDouble) -> Play:
    """Plays cells in which all six are there."""

    def play(*cells: str, path: Path | None = None, **config: Any) -> KernelRun:
        plugins = [ours(name, **config.get(name, {})) for name in NAMES]
        return kernel.run(kernel.make_setup(*plugins), *cells, path=path)

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
    "fuzzy_join": ("pandas", "fuzzy_join(1, 2, 'a')"),
    "anomalies": ("pandas", "anomalies(1, 'a')"),
    "web_table": ("pandas", "web_table('<table>')"),
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


@pytest.mark.parametrize(
    ("encoding", "delimiter"), [("cp1252", ";"), ("utf-8", "\t"), ("utf-8-sig", "|"), ("utf-16", ";")]
)
def test_csv_profile_finds_odd_values(play, work, encoding, delimiter):
    (work / "messy.csv").write_bytes(MESSY.replace(";", delimiter).encode(encoding))
    result = play(
        "columns, text = csv_profile('messy.csv')\nprint(text)",
        "columns[['column', 'type', 'missing', 'distinct', 'lowest', 'highest']].values.tolist()",
    )
    shown = "utf-8" if "sig" in encoding else encoding
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
    assert result.cells[0]["out"].splitlines() == [
        f"report.csv: 4 rows, 5 columns; {encoding}, delimiter ';'; header in line 4 (skiprows=3) below "
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
    assert read_number(text).to_float(False) == expected
    assert read_number("1,234").to_float(True) == 1.234
    assert read_number("1.234").to_float(True) == 1234


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


# --- web_table

PAGE = """<html><head><meta charset="{charset}"><style>td {{ color: red }}</style></head><body>
<table class=menu><tr><td>Home<td>About</tr></table>
<table><caption>Städte <script>evil("<td>")</script></caption>
<thead><tr><th rowspan=2>town<th colspan=2>people</tr><tr><th>1990<th>2020[1]</tr></thead>
<tbody><tr><td rowspan=2>Köln<br>am Rhein<td>953,551<td>1,083,498[a]</tr>
<tr><td>–<td>−5</tr>
<tr><td>Ulm <table><tr><td>within</td></tr></table></td><td>110,529<td>126,949</tr></tbody></table></body></html>
"""  # noqa: RUF001


def test_web_table_reads_spans_from_file(play, work):
    (work / "towns.html").write_bytes(PAGE.format(charset="iso-8859-15").encode("iso-8859-15", "xmlcharrefreplace"))
    result = play("web_table('towns.html').fillna(0).to_dict('list')", "len(web_table('towns.html', number=2))")
    assert eval(result.values[0]) == {
        "town": ["Köln am Rhein", "Köln am Rhein", "Ulm"],
        "people 1990": [953551.0, 0.0, 110529.0],
        "people 2020": [1083498, -5, 126949],
    }
    assert result.cells[0]["out"].splitlines()[:4] == [
        "table 1 of 3:",
        "0: rows: 1, columns: column_1, column_2",
        "1: Städte, rows: 3, columns: town, people 1990, people 2020",
        "2: rows: 1, columns: column_1",
    ]


def test_web_table_fetches_pages(play):
    page = PAGE.format(charset="latin-1").encode()
    kind = "text/html; charset=utf-8"
    with threaded([raw(page, kind=kind), Response(404), raw(b"x" * 3_000_000, kind=kind)]) as server:
        result = play(
            f"web_table('http://127.0.0.1:{server.port}/towns', contains='KÖLN').columns.to_list()",
            f"web_table('http://127.0.0.1:{server.port}/towns')",
            f"web_table('http://127.0.0.1:{server.port}/large')",
            web_table={"limit_mb": 2},
        )
    assert result.cells[0]["value"] == "['town', 'people 1990', 'people 2020']"
    assert result.cells[1]["error"] == f"ConnectionError: 'http://127.0.0.1:{server.port}/towns' answered 404 (X)"
    assert result.cells[2]["error"] == f"ValueError: 'http://127.0.0.1:{server.port}/large' has more than 2 MB"


def test_web_table_errors(play, work):
    (work / "page.html").write_text("<p>nothing")
    with threaded([]) as server:
        gone = f"http://127.0.0.1:{server.port}"
    report = errors(
        play(
            "web_table('page.htm')",
            "web_table('page.html')",
            "web_table('<table><tr><td>a</table>', contains='b')",
            "web_table('<table><tr><td>a</table>', number=1)",
            f"web_table('{gone}/x')",
        )
    )
    assert report[:4] == [
        "FileNotFoundError: no file 'page.htm'; similar: page.html",
        "ValueError: there is no table on the page; perhaps a script creates it in the browser",
        "ValueError: no table contains 'b'; the tables are:\n0: rows: 1, columns: column_1",
        "ValueError: there is no table 1; the tables are:\n0: rows: 1, columns: column_1",
    ]
    assert report[4].startswith(f"ConnectionError: '{gone}/x' can't be fetched (")
    assert report[4].endswith("; without network access, save the page with another tool and give its path")


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


# --- fuzzy_join

NAMES_OF_FIRMS = f"""{PD}left = pd.DataFrame({{
    "firm": ["ACME Corp.", "Müller & Söhne", "Nobody", None, "Gate 12", "Acme corp"],
    "id": range(6)}}, index=list("abcdef"))
right = pd.DataFrame({{"name": ["Acme Corp", "Mueller und Soehne", "Sohne and Muller", "Gate 13", "ACME CORP"],
    "id": [10, 11, 12, 13, 14]}})
"""


def test_fuzzy_join_finds_best_match(play):
    result = play(
        NAMES_OF_FIRMS,
        "joined = fuzzy_join(left, right, 'firm', 'name')\njoined.fillna(-1).reset_index().values.tolist()",
        "fuzzy_join(left, right, 'firm', 'name', how='inner').index.to_list()",
        "fuzzy_join(left, right, 'firm', 'name', threshold=1).id_right.to_list()[::5]",
        "fuzzy_join(left.head(1), right, 'firm', 'name').id_right.dtype.kind",
    )
    rows = eval(result.values[1])
    assert [(row[0], row[2], row[3], row[4]) for row in rows] == [
        ("a", 0, "Acme Corp", 10.0),
        ("b", 1, "Sohne and Muller", 12.0),
        ("c", 2, -1, -1.0),
        ("d", 3, -1, -1.0),
        ("e", 4, -1, -1.0),
        ("f", 5, "Acme Corp", 10.0),
    ]
    assert [row[5] == 1 for row in rows] == [True, False, False, False, False, True]
    assert 0.8 <= rows[1][5] < 1
    assert result.values[2:] == ["['a', 'b', 'f']", "[10.0, 10.0]", "'i'"]
    assert result.cells[1]["out"].startswith("3 of 6 rows matched; repeated keys in right: 1, the first was taken\n")


def test_fuzzy_join_can_ignore_digits(play):
    result = play(
        NAMES_OF_FIRMS,
        "fuzzy_join(left, right, 'firm', 'name').id_right['e']",
        fuzzy_join={"same_digits": False},
    )
    assert result.values[1] == "np.float64(13.0)"


def test_fuzzy_join_is_fast(play):
    """Each key is found again with a letter changed; all pairs would be 9 million comparisons of texts."""
    result = play(
        f"""{PD}import random
draw = random.Random(1)
words = ["".join(draw.choices("abcdefghijklmnoprstuw", k=6)) for _ in range(300)]
keys = list(dict.fromkeys(" ".join(draw.choices(words, k=3)) for _ in range(3000)))
def other(key):
    at = draw.randrange(len(key))
    return key[:at] + "x" + key[at + 1:]
right = pd.DataFrame({{"key": keys}})
left = pd.DataFrame({{"key": map(other, keys)}})""",
        "joined = fuzzy_join(left, right, 'key')\nbool((joined.key_right == right.key).mean() > .995)",
    )
    assert result.values[1] == "True"


def test_fuzzy_join_errors(play):
    report = play(
        NAMES_OF_FIRMS,
        "fuzzy_join(left, right, 'frm')",
        "fuzzy_join(left, right, 'firm')",
        "fuzzy_join(left, right[:0], 'firm', 'name')",
        "fuzzy_join(left, 3, 'firm')",
        "fuzzy_join(left, right, 'firm', 'name', how='outer')",
        "fuzzy_join(left, right, 'firm', 'name', threshold=80)",
    )
    assert [cell["error"] for cell in report.cells[1:]] == [
        "ValueError: left has no column 'frm'; did you mean: firm?",
        "ValueError: right has no column 'firm'; its columns are: name, id",
        "ValueError: right has no rows; there is nothing to join",
        "ValueError: right is a int; fuzzy_join takes data frames",
        "ValueError: unknown join 'outer'; use 'left' (all rows of left) or 'inner' (those with a match)",
        "ValueError: the threshold 80.0 is not between 0 and 1",
    ]


# --- anomalies

SERIES = f"""{PD}draw = np.random.default_rng(1)
times = pd.date_range("2024-01-01", periods=24 * 60, freq="h")
values = 50 + 30 * np.sin(times.hour / 24 * 6.28) + draw.normal(0, 2, len(times)) + np.arange(len(times)) * .05
df = pd.DataFrame({{"time": times, "value": values}})
df.loc[777, "value"] += 25
def odd(values, **how): return anomalies(pd.DataFrame({{"value": values}}), "value", **how).index.to_list()
"""
FOUND = {
    "anomalies(df, 'value', 'time').index.to_list()": "[777]",
    "anomalies(df.sample(frac=1, random_state=1), 'value', 'time').index.to_list()": "[777]",
    "anomalies(df.astype({'time': str}), 'value', 'time').index.to_list()": "[777]",
    # Irregular: half of the moments are gone, and some values.
    "anomalies(df.drop(df.sample(frac=.5, random_state=3).index.difference([777])).assign("
    "value=lambda d: d.value.where(d.index % 9 > 0)), 'value', 'time').index.to_list()": "[777]",
    "odd(df.value.to_list(), period=24)": "[777]",
    "odd([5.0] * 20)": "[]",
    "odd([5.0] * 10 + [6.0] + [5.0] * 10)": "[10]",
    "odd(range(100))": "[]",
    "odd(np.arange(100.0) ** 2)": "[]",
    "odd([1, 2] * 20 + [np.nan, 90, None] + [1, 2] * 20)": "[41]",
    "odd(list(draw.normal(0, 1, 200)) + [np.inf], threshold=6)": "[]",
    "sorted(odd([100, *draw.normal(0, 1, 200), -100]))": "[0, 201]",
}


def test_anomalies_finds_unusual_rows(play):
    result = play(SERIES, *FOUND)
    assert dict(zip(FOUND, result.values[1:], strict=True)) == FOUND


def test_anomalies_explains_rows(play):
    result = play(
        SERIES,
        "found = anomalies(df, 'value', 'time')\n[found.columns.to_list(), *found.reason]",
        "df.loc[5, 'value'] = None; _ = anomalies(df, 'value', 'time')",
        "anomalies(pd.DataFrame({'v': [5] * 10 + [6] + [5] * 10}), 'v').reason.iloc[0]",
    )
    columns, reason = eval(result.values[1])
    assert columns == ["time", "value", "expected", "deviation", "reason"]
    assert "expected for this hour of the day: " in reason
    assert "rows left out, without a value or a time: 1 of 1,440" in result.cells[2]["out"]
    assert eval(result.values[3]) == "6 is 1 above the 5 expected: 16.8 times the usual deviation"


def test_anomalies_errors(play):
    report = play(
        SERIES,
        "anomalies(df, 'valu')",
        "anomalies(df, 'value', 'when')",
        "anomalies(df[:5], 'value')",
        "anomalies(df[:0], 'value')",
        "anomalies(df.assign(value='a'), 'value')",
        "anomalies(df[:20], 'value', period=11)",
        "anomalies([1, 2], 'value')",
    )
    assert [cell["error"] for cell in report.cells[1:]] == [
        "ValueError: the data frame has no column 'valu'; did you mean: value?",
        "ValueError: the data frame has no column 'when'; its columns are: time, value",
        "ValueError: 5 values are too few to find the usual ones; at least 8 are needed",
        "ValueError: 0 values are too few to find the usual ones; at least 8 are needed",
        "ValueError: the column 'value' has no numbers, but for example 'a'",
        "ValueError: a period of 11 needs at least 22 values; there are 20",
        "ValueError: anomalies takes a data frame, and this is a list",
    ]


# --- the page


def test_examples_in_docs_run(play, work, databases):
    """In their order, in one kernel."""
    write(work / "orders.csv")
    with sqlite3.connect(work / "shop.db") as connection:
        connection.execute("create table customers (town text, owner text)")
        connection.executemany("insert into customers values (?, ?)", [("Berlin", "Ada"), ("Köln", "Bo")])
    (work / "towns.html").write_text(
        "<table><tr><td>menu</table><table><caption>By population<tr><th>town<th>people"
        "<tr><td>BERLÍN<td>3,677,472<tr><td>Koeln<td>1,073,096</table>"
    )
    sold = [100 + at % 7 for at in range(90)]
    sold[40] = 900
    lines = [f"{date(2025, 1, 1) + timedelta(days=at)},{each}" for at, each in enumerate(sold)]
    (work / "daily.csv").write_text("\n".join(["day,sold", *lines]))
    page = (ROOT / "docs/analyst.md").read_text()
    cells = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    result = play(*cells, "list(known.itertuples(index=False, name=None)), list(joined.people), list(odd.sold)")
    known, people, odd = eval(result.values[-1].replace("nan", "None"))
    assert [(town, owner) for town, owner, _ in known] == [("Berlin", "Ada"), ("Köln", "Bo")]
    assert people[0] == 3677472
    assert odd == [900]
    for words in ("earlier one: 1,000", "written in more than one way", "wrong encoding", "D.M.Y"):
        assert words in result.cells[0]["out"]
    assert [message["description"] for message in result.list_messages("artifact")] == ["Sold a day"]
