"""The values that pass between the driver of a batch and its workers, which may be on other machines."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from goose_like.core.message import FrozenModel, Usage

PlaceKind = Literal["worktree", "copy", "clone"]
"""How a worker gets a folder of its own: a git worktree, a copy of a folder, or a clone of a repository."""

Status = Literal["done", "failed"]


class Scripts(FrozenModel):
    """Commands around the work on an input, which run in the sandbox: one makes the files ready, one checks the work.

    Without a `setup` the files are ready. The check decides whether the input is done. Both can read `folder`.
    """

    folder: str
    setup: tuple[str, ...] = ()
    check: tuple[str, ...]
    environment: dict[str, str] = {}


class BatchInput(FrozenModel):
    """One input: the row as the person wrote it, the parameters of the recipe, and what to work on.

    `source` is a folder, or the address of a repository; a copy of nothing is empty. `options` and `limits` are those
    of this input: its options win over those of the batch, and the limits of the batch win over its limits.
    """

    row: dict[str, Any]
    parameters: dict[str, Any] = {}
    place: PlaceKind
    source: str
    options: dict[str, Any] = {}
    limits: dict[str, float] = {}
    scripts: Scripts | None = None


class Job(FrozenModel):
    """The work of one worker on one input. `attempt` counts from 1."""

    batch: str
    number: int
    attempt: int
    recipe: str
    """The file of the recipe."""
    texts: dict[str, str]
    """The texts of the recipe, as the person judged them."""
    digest: str
    """The digest of these texts and of those of sub recipes."""
    folder: str
    """The folder of the batch. The worker makes its own folder there."""
    input: BatchInput
    limits: dict[str, float]
    """The limits of this input, by fields of `Limits`."""
    options: dict[str, Any] = {}
    """Fields of `ProfileOptions`."""

    @property
    def name(self) -> str:
        """The name of the worker's session, folder and branch."""
        name = f"{self.batch}-{self.number:04d}"
        return name if self.attempt == 1 else f"{name}-{self.attempt}"


class Outcome(FrozenModel):
    """The end of the work on an input."""

    status: Status
    exit_code: int
    reason: str = Field(default="", description="one sentence, unless the work was simply done")
    result: str = ""
    structured: Any = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    steps: int = 0
    session: str = ""
    branch: str = ""


class JobResult(FrozenModel):
    """The end of a job with what the driver writes into files: the changes as a patch, and the receipt."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    outcome: Outcome
    patch: bytes = b""
    receipt: str = ""


class ResultLine(Outcome):
    """One line of the results. `number` is the place of the input, counted from 1. Files are in the batch's folder."""

    number: int
    input: dict[str, Any]
    attempts: int
    seconds: float
    patch: str = ""
    receipt: str = ""
