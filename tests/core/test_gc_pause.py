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

PAUSES = """
import gc, weakref
from goose_like.core.gc_pause import pause_gc

class Node:
    def __init__(self):
        self.me = self

with pause_gc():
    pass
node = weakref.ref(Node())
with pause_gc():
    pass
gc.collect()
print(gc.get_freeze_count() > 0, node() is None)
"""


def test_a_pause_does_not_keep_the_garbage_of_a_long_process():
    process = subprocess.run([sys.executable, "-c", PAUSES], capture_output=True, text=True, check=True)
    assert process.stdout == "True True\n"


def test_a_start_freezes_its_objects_once():
    process = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert process.stdout == "True True True\n"
