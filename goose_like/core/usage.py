"""The tokens of a session by model."""

from dataclasses import field
from operator import add, itemgetter

from goose_like.core.dataclass import dataclass

from .message import Usage

# Tuples, because a `Usage` for each sum takes a third of the time to replay a long session.
_Counts = tuple[int, ...]

_get_counts = itemgetter(*Usage.model_fields)


@dataclass(slots=True)
class SessionUsage:
    """The tokens of a session by model, and of its newest turn.

    A turn that a killed process left counts with the next one. `turn_step_count` includes the steps of subagents.
    """

    _counts: dict[str, _Counts] = field(default_factory=dict)
    _turn_counts: dict[str, _Counts] = field(default_factory=dict)
    turn_step_count: int = 0

    @property
    def by_model(self) -> dict[str, Usage]:
        """All tokens by model."""
        return _make_usages(self._counts)

    @property
    def turn_by_model(self) -> dict[str, Usage]:
        """The tokens of the newest turn by model."""
        return _make_usages(self._turn_counts)

    @property
    def total(self) -> Usage:
        """All tokens of all models."""
        return sum(self.by_model.values(), Usage())

    @property
    def turn_total(self) -> Usage:
        """The tokens of the newest turn of all models."""
        return sum(self.turn_by_model.values(), Usage())

    def start_turn(self) -> None:
        """Count the tokens of the next turn from zero."""
        self._turn_counts = {}
        self.turn_step_count = 0

    def add(self, model: str, usage: Usage, steps: int) -> None:
        """Add tokens of a model, and steps, to the session and to its newest turn."""
        self.turn_step_count += steps
        new = _get_counts(vars(usage))
        _add_counts(self._counts, model, new)
        _add_counts(self._turn_counts, model, new)


def _add_counts(counts: dict[str, _Counts], model: str, new: _Counts) -> None:
    old = counts.get(model)
    if old:
        new = tuple(map(add, old, new))
    counts[model] = new


def _make_usages(counts: dict[str, _Counts]) -> dict[str, Usage]:
    usages = {}
    for model, model_counts in counts.items():
        by_kind = dict(zip(Usage.model_fields, model_counts, strict=True))
        usages[model] = Usage(**by_kind)
    return usages
