"""Host access: the hosts that commands reach through the proxy, by the profile's list or by the person's answers."""

import asyncio
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from goose_like.config.profile import WEB_SEARCH_HOST
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import DeniedError
from goose_like.core.pattern import compile_later
from goose_like.workspace.permissions.permissions import Permissions
from goose_like.workspace.processes.process import SpawnerClient

from .address_filter import Address, is_address, is_loopback, normalize_host


def format_host(host: str, port: int) -> str:
    """Format a host as questions and lists name it: without the port if that is 80 or 443."""
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return normalize_host(f"{host}:{port}")


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer of the person about a host. It holds while one of the commands runs."""

    commands: set[int]
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class VendorDomains:
    """The domains that a vendor's tool may reach, with all hosts below them; none means all.

    With a `problem`, the tool may reach nothing.
    """

    domains: tuple[str, ...] = ()
    problem: str = ""


_DOMAIN = compile_later(r"[a-z0-9-]+(\.[a-z0-9-]+)+")


class HostAccess:
    """The hosts that the commands of one workspace may reach.

    An answer for once holds while the command runs for which it was given, and a refusal while any of the commands runs
    that ran at that time. `take_refusals` returns the refusals and the failed connections for the model.
    """

    def __init__(self, permissions: Permissions, allowed: Iterable[str]) -> None:
        self._permissions = permissions
        self._allowed = [normalize_host(pattern) for pattern in allowed]
        self._asking = asyncio.Lock()
        self._answers: dict[tuple[SpawnerClient, str], _Answer] = {}
        self._refusals: dict[str, None] = {}
        self.granted: list[str] = []
        """The hosts that the person allowed to commands, one after the other."""
        self.reached: set[str] = set()
        """The hosts that were allowed in this turn, also those of subagents."""
        self.limits: set[asyncio.Timeout] = set()
        """The time limits that stand still during a question."""

    def is_listed(self, host: str) -> bool:
        """Check whether the profile lists a host. Patterns that begin with `*` match no addresses."""
        return self._matches(host, self._allowed)

    def is_listed_for(self, host: str, address: Address) -> bool:
        """Check whether the profile lists a host that leads to an address of this machine or of its network.

        A name of this machine must be listed in full. Other private addresses need a pattern that names a part of the
        host. The port may be any pattern.
        """
        named = r"[^*?]+" if is_loopback(address) else r".*\w.*"
        patterns = [pattern for pattern in self._allowed if re.fullmatch(named, _drop_port(pattern))]
        return self._matches(host, patterns)

    def _matches(self, host: str, patterns: Iterable[str]) -> bool:
        if is_address(host):
            patterns = [pattern for pattern in patterns if pattern[:1] == host[:1]]
        return any(host == pattern or fnmatchcase(host, pattern) for pattern in patterns)

    def is_allowed(self, host: str) -> bool:
        """Check whether the profile lists a host, and neither a rule nor the mode says otherwise."""
        rule, _ = self._permissions.judge("domain", host)
        return self.is_listed(host) and rule in (None, "allow") and self._permissions.decide("domain") != "refuse"

    def find_vendor_domains(self, *, is_search: bool) -> VendorDomains:
        """Find the domains that a tool on the server of a model's vendor may reach: those that the profile lists.

        The profile chose such a tool, which is the permission. The vendor asks nobody and knows no rules. The modes
        change nothing: other tools in the request would cost the vendor's cache and the model's thinking.
        """
        if self._permissions.limits_hosts:
            return VendorDomains(problem="the vendor cannot keep your rules about domains")
        has_no_limit = not self._allowed or "*" in self._allowed
        if has_no_limit or (is_search and WEB_SEARCH_HOST in self._allowed):
            return VendorDomains()
        domains = []
        for pattern in self._allowed:
            domain = pattern.removeprefix("*.")
            if _DOMAIN.fullmatch(domain) and not is_address(domain):
                domains.append(domain)
        if not domains:
            return VendorDomains(problem="the vendor knows none of the hosts under `network: {allow}`")
        return VendorDomains(tuple(dict.fromkeys(domains)))

    async def require_for_tool(self, host: str, port: int, text: str) -> None:
        """Return once a tool may connect to a host. Raise DeniedError if the host is not allowed."""
        name = format_host(host, port)
        if not self.is_allowed(name):
            await self._permissions.require("domain", name, text)
        self.reached.add(name)

    async def require(self, host: str, spawner: SpawnerClient) -> None:
        """Return once the commands of a spawner may reach a host. The command waits while the person is asked.

        Raises:
            DeniedError: the host is not allowed.
        """
        if self.is_allowed(host):
            self.reached.add(host)
            return
        if is_address(host):
            why = f"use the host's name; only the person can list an address, as network: {{allow: [{host}]}}"
            self.record_refusal(host, "an address without a name")
            raise DeniedError(self.refuse(f"not allowed: connect to {host}: {why}"))
        async with self._asking:
            answer = self._answers.get((spawner, host))
            if answer is not None and answer.commands & spawner.running.keys():
                refusal = answer.refusal
            else:
                refusal = await self._ask(host, spawner)
        if refusal:
            raise DeniedError(refusal)
        self.reached.add(host)

    async def _ask(self, host: str, spawner: SpawnerClient) -> str:
        """Ask the person, keep the answer, and return the refusal if there is one."""
        if not spawner.running:
            return self.refuse(f"not allowed: connect to {host}: the command that might need it has ended")
        commands = set(spawner.running)
        newest = max(commands)
        subject, ended = spawner.running[newest]
        others = [f"also running: {spawner.running[number][0]}" for number in commands - {newest}]
        detail = "\n".join(others)
        text = f"connect to {host} for: {subject}"
        question = asyncio.ensure_future(self._permissions.require("domain", host, text, lambda: detail))
        either: list[asyncio.Future[Any]] = [question, ended]
        with self.pause_limits():
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                question.cancel()  # without effect if it was answered
        if not question.done() or question.cancelled():
            return f"not allowed: {text}: there was no answer in time"
        error = question.exception()
        if error is None:
            self._answers[spawner, host] = _Answer({newest})
            self.granted.append(host)
            return ""
        if not isinstance(error, DeniedError):
            raise error
        refusal = self.refuse(str(error))
        self._answers[spawner, host] = _Answer(commands, refusal)
        return refusal

    @contextmanager
    def pause_limits(self) -> Iterator[None]:
        """Let the time limits of running commands stand still."""
        now = asyncio.get_running_loop().time
        left_s: dict[asyncio.Timeout, float] = {}
        for limit in self.limits:
            when = limit.when()
            if when and not limit.expired():
                left_s[limit] = when - now()
                limit.reschedule(None)
        try:
            yield
        finally:
            for limit in left_s.keys() & self.limits:
                limit.reschedule(now() + left_s[limit])

    async def wait_for_answers(self) -> None:
        """Wait until the person has answered the open questions of commands about hosts."""
        async with self._asking:  # it is fair: those who asked before come first
            return

    def refuse(self, sentence: str) -> str:
        """Keep a refusal or a failure for the model, and return it."""
        self._refusals[sentence] = None
        return sentence

    def record_refusal(self, host: str, reason: str) -> None:
        """Record for the person that the proxy refused a host which only the profile can allow."""
        allowed_by = f"network: {{allow: [{host}]}} in the profile"
        self._permissions.record_refusal("domain", host, "proxy", allowed_by, reason)

    def take_refusals(self) -> list[str]:
        """Return the refusals since the last call."""
        refusals = list(self._refusals)
        self._refusals = {}
        return refusals


def _drop_port(pattern: str) -> str:
    return re.sub(r":[\d*?]+$", "", pattern)
