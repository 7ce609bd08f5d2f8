"""A worker of a batch: it runs the recipe on one input after the other, each in a session and a folder of its own."""

import asyncio
import os
import stat
import sys
import traceback
from functools import partial
from pathlib import Path

from goose_like.agent.budget import narrow_limits
from goose_like.agent.receipt import format_receipt, make_receipt
from goose_like.config.private_folder import remove_abandoned_folders
from goose_like.config.profile import Limits, Profile
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.masking import mask_text
from goose_like.launch.agent import Agent
from goose_like.launch.exit import keep_stdout
from goose_like.launch.recipe_run import run_recipe
from goose_like.providers.shared_pauses import SharedPauses, shared_pauses
from goose_like.recipes.profile import change_profile, name_model
from goose_like.recipes.recipe import FilledRecipe, load_recipe, write_values
from goose_like.recipes.trust import digest_texts
from goose_like.workspace.workspace import Workspace

from .comparison import has_error
from .job import Job, JobResult, Outcome
from .pauses import FilePauses
from .place import Place, open_place
from .scripts import check_work


async def run_job(job: Job, pauses: SharedPauses) -> JobResult:
    """Run the recipe on one input. A failure is a result, too."""
    shared_pauses.set(pauses)
    here = Path.cwd()
    result = JobResult(outcome=Outcome(status="failed", exit_code=1))
    try:
        filled = load_recipe(Path(job.recipe), job.texts).fill(write_values(job.input.parameters))
        if digest_texts(filled) != job.digest:
            raise UsageError("a sub recipe changed since the batch started; start a new batch")
        async with open_place(job) as place:
            os.chdir(place.folder)  # code of other packages may use the current folder
            try:
                result = await _work(job, filled, place)
                scripts = job.input.scripts
                if scripts is None or has_error(result.outcome):
                    return result
                checked = await check_work(scripts, result.outcome, place.folder, job.options)
                return result.model_copy(update={"outcome": checked})
            finally:
                os.chdir(here)
    except GooseLikeError as error:
        return _fail(result, error.exit_code, str(error))
    except Exception as error:
        traceback.print_exc()  # into the log of the workers
        return _fail(result, 1, f"a fault in goose_like: {error!r}")


def _fail(result: JobResult, exit_code: int, reason: str) -> JobResult:
    """Return a result as that of a job that failed. What the model has used and left stays in it."""
    update = {"status": "failed", "exit_code": exit_code, "reason": mask_text(reason)}
    return result.model_copy(update={"outcome": result.outcome.model_copy(update=update)})


async def _work(job: Job, filled: FilledRecipe, place: Place) -> JobResult:
    options = {"model": name_model(filled), **job.options}
    change = partial(_change, job, filled)
    async with Agent(cwd=place.folder, session=job.name, change=change, **options) as agent:
        end = await run_recipe(filled, agent)
        exchange = agent.conversation.exchange
        receipt = format_receipt(await make_receipt(exchange), is_json=True)
        outcome = Outcome(
            status="failed" if end.exit_code else "done",
            exit_code=end.exit_code,
            reason=end.detail,
            result=end.result,
            structured=end.structured,
            usage=end.usage,
            cost_usd=end.cost_usd,
            steps=end.steps,
            session=end.session,
        )
        result = JobResult(outcome=outcome, receipt=receipt)
        if exchange.workspace.mode == "read-only" or exchange.workspace.is_turn_read_only:
            return result
        try:
            return await _keep_changes(result, place, exchange.workspace, f"{filled.content.title}: input {job.number}")
        except GooseLikeError as error:
            place.is_kept = True
            return _fail(result, error.exit_code, f"{error}; the files are in {place.folder}")


async def _keep_changes(result: JobResult, place: Place, workspace: Workspace, message: str) -> JobResult:
    """Commit the changes on the branch of a worktree. Elsewhere, add them to the result as a patch."""
    if not place.branch:
        return result.model_copy(update={"patch": await place.make_patch(workspace)})
    if await place.commit(workspace, message):
        return result.model_copy(update={"outcome": result.outcome.model_copy(update={"branch": place.branch})})
    return result


def _change(job: Job, filled: FilledRecipe, profile: Profile) -> Profile:
    """Return the profile for the recipe. The limits of this input only lower those that hold anyway."""
    changed = change_profile(filled, profile)
    bounds = Limits.model_validate(job.limits).model_dump(exclude_unset=True)
    return changed.model_copy(update={"limits": narrow_limits(changed.limits, bounds)})


async def _serve() -> None:
    """Read jobs, one a line, and write their results. The end of the input stops the job that runs."""
    reader = asyncio.StreamReader(limit=2**26)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    line = await reader.readline()
    while line:
        job = Job.model_validate_json(line)
        work = asyncio.create_task(run_job(job, FilePauses(Path(job.folder) / "pauses")))
        next_line = asyncio.create_task(reader.readline())
        await asyncio.wait({work, next_line}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():  # the driver is gone, or it stops
            work.cancel()
            await asyncio.wait({work})
            return
        print(work.result().model_dump_json(), flush=True)
        line = await next_line


def main() -> None:
    """Serve as a worker process. The input must be a pipe: it tells when the driver is gone."""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
        sys.exit("this module is a part of `goose-like batch`, which starts it with a pipe of jobs; run that command")
    remove_abandoned_folders()
    with keep_stdout():
        asyncio.run(_serve())


if __name__ == "__main__":
    main()
