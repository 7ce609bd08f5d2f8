"""A worked example of data analysis, for the smallest models."""

from goose_like.toolkit import Example, ExampleCall


def _run(code: str, output: str) -> ExampleCall:
    return ExampleCall("run_python", {"code": code}, output)


EXAMPLES = (
    Example(
        "How many dishes has menu.csv? Draw the prices per kind.",
        (
            _run(
                "import pandas as pd\nmenu = pd.read_csv('menu.csv')\nprint(len(menu))\nprint(menu.head(1))\n",
                "3\n   dish  kind        day  price\n0  soup  warm 2024-05-01      4",
            ),
            _run(
                "costs = menu.groupby('kind')['cost'].sum()\nprint(costs)\ncosts.plot.bar()\n",
                "KeyError: 'Column not found: cost'\nuse one of these columns: 'dish', 'kind', 'day', 'price'",
            ),
            _run(
                "prices = menu.groupby('kind')['price'].sum()\nprint(prices)\nprices.plot.bar()\n",
                "kind\ncold     3\nwarm    15\n[figure: outputs/1.png]",
            ),
        ),
        "menu.csv has 3 dishes. The prices are 15 for warm and 3 for cold dishes; see the figure.",
    ),
)
