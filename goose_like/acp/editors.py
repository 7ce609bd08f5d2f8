"""The settings of editors that start goose-like."""

import json
import os
import shutil
import sys
from typing import Literal

EditorName = Literal["zed", "jetbrains", "neovim", "emacs"]

_NEOVIM = """\
-- For codecompanion.nvim, in its setup:
adapters = {{
  acp = {{
    goose_like = function()
      return require("codecompanion.adapters").extend("opencode", {{
        name = "goose_like",
        formatted_name = "goose-like",
        commands = {{ default = {words} }},
      }})
    end,
  }},
}},
interactions = {{ chat = {{ adapter = "goose_like" }} }},"""

_EMACS = """\
;; For agent-shell:
(with-eval-after-load 'agent-shell
  (add-to-list 'agent-shell-agent-configs
               (agent-shell-make-agent-config
                :identifier 'goose-like
                :mode-line-name "goose-like"
                :buffer-name "goose-like"
                :shell-prompt "goose-like> "
                :shell-prompt-regexp "goose-like> "
                :client-maker (lambda (buffer)
                                (acp-make-client :command {command}
                                                 :command-params '({parameters})
                                                 :context-buffer buffer)))))"""


def format_config(editor: EditorName, profile: str | None, model: str | None) -> str:
    """Return the settings of an editor, with the absolute path of the command: editors have another PATH."""
    command = _find_command()
    words = ["acp"]
    if profile:
        words += ["--profile", profile]
    if model:
        words += ["--model", model]
    entry = {"command": command, "args": words, "env": {}}
    match editor:
        case "zed":
            custom = {"type": "custom", **entry}
            return json.dumps({"agent_servers": {"goose-like": custom}}, indent=2)
        case "jetbrains":
            return json.dumps({"agent_servers": {"goose-like": entry}}, indent=2)
        case "neovim":
            quoted = ", ".join(map(json.dumps, [command, *words]))
            return _NEOVIM.format(words="{ " + quoted + " }")
        case "emacs":
            parameters = " ".join(map(json.dumps, words))
            return _EMACS.format(command=json.dumps(command), parameters=parameters)


def _find_command() -> str:
    """Return the absolute path of the running command, else of the one on the PATH."""
    started = os.path.abspath(sys.argv[0])
    if os.path.basename(started) == "goose-like":
        return started
    return shutil.which("goose-like") or "goose-like"
