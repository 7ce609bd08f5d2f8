"""A plugin's own tests, tried one by one: each with an object and a context that nothing else has seen."""

import asyncio
import inspect
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from .plugin_loader import Implementation, Test, told


def try_out(implementation: Implementation, variables: Mapping[str, str]) -> list[dict[str, Any]]:
    """What came of each test: its name, its description, and its error or None. Variables are the session's."""
    return [
        {"name": test.name, "description": test.description, "error": _error_of(test, implementation, variables)}
        for test in implementation.tests
    ]


def _error_of(test: Test, implementation: Implementation, variables: Mapping[str, str]) -> str | None:
    source = implementation.source
    try:
        with import_module("taskweaver.plugin.context").temp_context() as context:
            context._env.update(source.variables())
            context._session_var.update(variables)
            result = test.run(implementation.make(context))
            if inspect.iscoroutine(result):  # in a thread, since a kernel's own has a loop that runs
                with ThreadPoolExecutor(1) as thread:
                    thread.submit(asyncio.run, result).result()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a stranger's code, which may call sys.exit
        return told(error, source.file)
    return None
