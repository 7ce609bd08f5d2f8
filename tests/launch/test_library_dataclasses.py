"""Dataclasses of libraries: ours are made where a start needs them, and no other class changes."""

import subprocess
import sys

SCRIPT = """
import dataclasses
from goose_like.launch.library_dataclasses import hasten_dataclasses

library = dataclasses.dataclass
hasten_dataclasses()
from dataclasses import dataclass
from annotated_types import Gt, Interval, Unit
from pydantic import AfterValidator, BaseModel, Field
from typing import Annotated

print(type(vars(Unit)["__init__"]).__name__, type(vars(Interval)["__init__"]).__name__)

class Model(BaseModel):
    number: Annotated[int, Gt(3), AfterValidator(abs)] = Field(lt=9)

print(Model(number=5).number, Gt(3) == Gt(gt=3), repr(Gt(3)))

@dataclass(order=True)
class Own:
    size: int

@dataclass
class Plain:
    size: int

print(Own(1) < Own(2), repr(Plain(1)), type(vars(Plain)["__init__"]).__name__)
"""


def test_classes_of_libraries_are_made_quickly_and_others_by_the_library() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "_LaterInit function",
        "5 True Gt(gt=3)",
        "True Plain(size=1) function",
    ]
