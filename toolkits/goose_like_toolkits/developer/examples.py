"""Worked examples of the shell and of files, for the smallest models."""

from goose_like.toolkit import Example, ExampleCall


def _run(command: str, output: str) -> ExampleCall:
    return ExampleCall("shell", {"command": command}, output)


_FIX = {"path": "bill.py", "content": "prices = [3, 4]\nprint(sum(prices))\n"}

# The smallest models follow examples better than rules: look at things, change them, check, answer. They also copy
# examples into their work, so two of these three are questions, which change nothing. Each word counts: with a question
# at the end and all marked as examples, the model wrote worse programs.
EXAMPLES = (
    Example(
        "What does lamp.py do?",
        (_run("cat lamp.py", "import sys\n\nif 'on' in sys.argv:\n    print('bright')"),),
        "lamp.py prints `bright` if one of its arguments is `on`, and else nothing.",
    ),
    Example(
        "bill.py prints a wrong total. Fix it.",
        (
            _run("cat bill.py && python bill.py", "prices = [3, 4]\nprint(sum(prices) + 1)\n8"),
            ExampleCall("write_file", _FIX, "saved bill.py (+1 -1 lines)"),
            _run("python bill.py", "7"),
        ),
        "bill.py added 1 to the sum. I took it out; now it prints 7.",
    ),
    Example(
        "What is the highest price in menu.csv?",
        (
            _run("cat menu.csv", "dish,price\nsoup,4\nfish,11\nrice,3"),
            _run("tail -n +2 menu.csv | cut -d, -f2 | sort -n | tail -n 1", "11"),
        ),
        "The highest price in menu.csv is 11.",
    ),
)
