from concopilot.framework.plugin import AbstractPlugin
from concopilot.framework.resource.category import LLM


class Summariser(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        llm = self.get_resource(resource_type="LLM")
        assert isinstance(llm, LLM)
        asked = LLM.LLMParameter(
            prompt=f"In at most {self.config.config.words} words: {param}", require_token_len=True, max_tokens=60
        )
        answer = llm.inference(asked)
        assert answer.input_token_len is not None
        return answer.content


def constructor(config):
    return Summariser(config)
