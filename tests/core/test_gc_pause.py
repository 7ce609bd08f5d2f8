"""Tests of the garbage collector during a start."""

import subprocess
import sys

SCRIPT = """
import gc
from goose_like.core.gc_pause import delay_gc, end_gc_delay
delay_gc()
delayed = gc.get_threshold()[0]
end_gc_delay()
frozen = gc.get_freeze_count()
ended = gc.get_threshold()[0]
kept = [[] for _ in range(100)]
end_gc_delay()
print(delayed > ended > 700, frozen > 1000, gc.get_freeze_count() == frozen)
"""


def test_a_start_freezes_its_objects_once():
    process = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert process.stdout == "True True True\n"
