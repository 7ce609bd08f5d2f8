"""The checks of bench/tasks: each accepts a right solution and refuses the untouched folder."""

import re
import subprocess
import sys

import pytest
import yaml

from tests import ROOT

FOLDER = ROOT / "bench" / "tasks"
TASKS = yaml.safe_load((FOLDER / "tasks.yaml").read_text())
IS_PRIME = "all(n % d for d in range(2, n))"
SOLUTIONS = {
    "primes": f"echo 'print(*[n for n in range(2, 30) if {IS_PRIME}], sep=chr(10))' > primes.py",
    "hundredth": f"echo 'print([n for n in range(2, 600) if {IS_PRIME}][99])' > p100.py",
    "fizzbuzz": 'echo \'for i in range(1, 16): print("Fizz" * (i % 3 < 1) + "Buzz" * (i % 5 < 1) or i)\' > fizz.py',
    "words": "echo 'print(len(open(\"notes.txt\").read().split()))' > count.py",
    "greeting": "sed -i 's/\"Hello/\"Goodbye/' app.py",
    "average": "sed -i 's/(len(numbers) - 1)/len(numbers)/' calc.py",
    "crash": "sed -i s/cuont/count/ report.py",
    "function": "printf '\\n\\ndef subtract(a, b):\\n    return a - b\\n' >> calc.py",
    "rename_function": "sed -i 's/\\btotal(/sum_of(/; s/import total/import sum_of/' *.py",
    "git": "git init -q; git add .; git -c user.name=n -c user.email=e commit -qm first",
    "port": "echo 'port 8472'",
    "sum_csv": "echo 'The sum is 42.'",
    "csv_to_json": 'echo \'[{"name": "Ann", "age": 31}, {"name": "Bob", "age": "27"}]\' > people.json',
    "edit_json": "sed -i 's/1.4.2/2.0.0/; /private/d' package.json",
    "rename_files": "mv a.txt a.md; mv b.txt b.md",
    "year": "sed -i s/2023/2024/g README.md docs/guide.md",
    "todo": "echo There are three.",
    "largest": "echo '`b.log`'",
    "sort": "sort -uo names.txt names.txt",
    "write_test": 'printf \'from slug import slug\\n\\nassert slug("A b") == "a-b"\\n\' > test_slug.py',
}


def solved(command: list[str], *words: str) -> list[str]:
    done = subprocess.run([sys.executable, FOLDER / "run", *words, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return re.findall(r"^(\w+) +yes ", done.stdout, re.MULTILINE)


def test_there_is_a_solution_for_each():
    assert len(TASKS) == 20
    assert list(SOLUTIONS) == list(TASKS)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_right_solution_is_accepted(name):
    assert solved(["bash", "-c", SOLUTIONS[name]], "--only", name) == [name]


def test_untouched_tasks_are_not_solved():
    assert solved(["true"]) == []


def test_an_unknown_task_is_told():
    done = subprocess.run([sys.executable, FOLDER / "run", "--only", "x", "true"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no task 'x'" in done.stderr
