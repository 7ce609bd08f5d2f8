import re
from pathlib import Path

from checking import evaluate, passes_tests, read, run_python

TODAY = "sends to mail.example.com:2525\nmail.example.com: 60 waiting, only 50 are fetched\n"
settings = read("settings.ini")
assert run_python("main.py") == TODAY, "main.py prints something else than today"
assert passes_tests("tests"), "the tests fail"
evaluate("from settings import load_settings\nload_settings()\nload_settings(path='missing.ini')", "1")
changed = settings.replace("mail.example.com", "post.example.org").replace("2525", "26").replace("50", "7")
assert changed.count("post.example.org") >= 1, "settings.ini has no host"
Path("settings.ini").write_text(changed)
printed = run_python("main.py")
expected = "sends to post.example.org:26\npost.example.org: 60 waiting, only 7 are fetched\n"
assert printed == expected, f"with other settings main.py prints {printed[:200]!r}"
without_port = re.sub(r"(?m)^.*\b26\b.*$", "", changed)
Path("settings.ini").write_text(without_port)
printed = run_python("main.py")
expected = expected.replace(":26", ":2525")
assert printed == expected, f"without the port in settings.ini main.py prints {printed[:200]!r}"
Path("settings.ini").unlink()
assert run_python("main.py") == TODAY, "without settings.ini main.py prints something else than today"
