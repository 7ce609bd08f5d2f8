"""What components may still ask of the models in the running turn, or in a run of a copilot."""

from collections.abc import Mapping

from goose_like.agent.subagent import narrow_limits, remaining_limits
from goose_like.config.profile import Limits
from goose_like.core.errors import GooseLikeError
from goose_like.core.tool import ToolError
from goose_like.providers.prices import has_price
from goose_like.sessions.session import Session

_EXIT_CODES = {"steps": 3, "cost_usd": 4, "tokens": 5}


class SpentError(ToolError):
    """A limit that is used up: its name in a profile, and the exit code of a run that ends for it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"nothing is left of this turn's limit of {name}; say in your answer what is still to do")
        self.name = name
        self.exit_code = _EXIT_CODES[name]


class Budget:
    """The limits of the running turn, and the steps that components took in it.

    Tokens and cost count in the history of the session, but requests of components are no steps there.
    """

    def __init__(self, limits: Limits, session: Session) -> None:
        self._limits = limits
        self._session = session
        self._turn = 0
        self._step_count = 0

    def take_step(self, model: str) -> Limits:
        """Count a request to a model, and return what is left for its answer.

        Raises:
            SpentError: nothing is left of a limit.
            GooseLikeError: there is a cost limit, but the price of the model is unknown.
        """
        left = self._compute_left()
        for name, value in left.items():
            if value is not None and value <= 0:
                raise SpentError(name)
        if self._limits.cost_usd and not has_price(model):
            raise GooseLikeError(f"the price of {model} is not known, so a cost limit can't be kept; limit tokens")
        self._step_count += 1
        return narrow_limits(self._limits, left)

    def add_steps(self, count: int) -> None:
        """Count further requests that an answer took, such as those after a wrong call."""
        self._step_count += count

    def _compute_left(self) -> Mapping[str, float | None]:
        history = self._session.history
        if self._turn != history.turn_count:
            self._turn = history.turn_count
            self._step_count = 0
        left = remaining_limits(self._limits, history)
        steps = left["steps"]
        assert steps is not None
        return {**left, "steps": steps - self._step_count}
