from concopilot.framework.plugin import PluginPromptGenerator


class Prompter(PluginPromptGenerator):
    def generate_prompt(self, plugin):
        return f"{plugin.name}: {plugin.config.info.description}"


def constructor(config):
    return Prompter(config)
