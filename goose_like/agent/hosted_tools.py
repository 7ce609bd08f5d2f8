"""Tools that the vendor of the model runs on its server: chosen by the profile, and kept within its rules."""

from collections.abc import Iterator, Mapping, Sequence

from goose_like.config.profile import HostedTool
from goose_like.core.dataclass import dataclass
from goose_like.core.tool import Tool
from goose_like.providers.base import HostedTools, Model
from goose_like.providers.known_models import WEB_SEARCH
from goose_like.workspace.network.host_access import VendorDomains
from goose_like.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class HostedChoice:
    """The tools that the profile wants from the vendor, in place of `tools` of ours."""

    workspace: Workspace
    tools: Mapping[str, Tool]
    wanted: Sequence[HostedTool]

    def choose(self, model: Model, *, shows_sources: bool = True) -> HostedTools:
        """Choose the wanted tools that the server of a model may run now."""
        if not self.wanted:
            return HostedTools()
        chosen: dict[str, Sequence[str]] = {}
        for name in self.wanted:
            if not self._find_problem(name, model):
                chosen[name] = self._find_domains(name).domains
        # A model wrote the task of a subagent.
        return HostedTools(chosen, shows_sources=shows_sources, trusts_messages=not self.workspace.is_child)

    def list_problems(self, model: Model) -> Iterator[str]:
        """Yield for each wanted tool that the vendor will not run the reason, for the person."""
        for name in self.wanted:
            problem = self._find_problem(name, model)
            if problem:
                yield f"the vendor's `{name}` (`hosted` in the profile) is off: {problem}"

    def _find_problem(self, name: HostedTool, model: Model) -> str:
        if not model.has_hosted(name):
            return f"the server of {model.label} has none; choose another model, or remove it from `hosted`"
        problem = self._find_domains(name).problem
        if problem:
            return problem
        replaced = [tool for tool in self.tools.values() if tool.spec.native == name]
        if not replaced:
            return "it takes the place of a tool of `developer`, which this profile or mode leaves out"
        for tool in replaced:
            if self.workspace.judge_tool(tool.name) in ("ask", "deny"):
                return f"the vendor cannot keep your rule about tool:{tool.name}"
        return ""

    def _find_domains(self, name: HostedTool) -> VendorDomains:
        return self.workspace.hosts.find_vendor_domains(is_search=name == WEB_SEARCH)
