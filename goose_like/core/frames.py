"""An error of somebody else's code, and where in that code it came up."""

import traceback


def frames(error: BaseException, module: object) -> list[str]:
    """`module:line in function: source` for each frame in the top-level package of `module`, the newest last."""

    def package(name: object) -> str:
        return str(name).partition(".")[0]

    modules = [frame.f_globals.get("__name__") for frame, _ in traceback.walk_tb(error.__traceback__)]
    each = zip(modules, traceback.extract_tb(error.__traceback__), strict=True)
    return [f"{name}:{f.lineno} in {f.name}: {f.line}" for name, f in each if package(name) == package(module)]


def told(error: BaseException, module: object) -> str:
    """The error in one line with its kind, and the newest of those frames where there is one."""
    where = frames(error, module)[-1:]
    return "; ".join([f"{type(error).__name__}: {error}", *(f"at {frame}" for frame in where)])
