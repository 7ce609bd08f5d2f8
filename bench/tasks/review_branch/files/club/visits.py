from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Visit:
    day: date
    member: str
