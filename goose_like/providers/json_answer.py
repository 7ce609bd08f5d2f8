"""Answers in JSON that fit a schema.

A server that can constrain its answers gets the schema, reduced to the keywords that it takes. Any other model gets a
tool whose arguments are the answer. The answer is checked against the original schema; a wrong one goes back.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from goose_like.core.errors import ProviderError, UsageError
from goose_like.core.events import MessageCompleted
from goose_like.core.message import Message, ToolResult, Usage
from goose_like.core.tool import ToolSpec

from .base import Provider, Request, SupportsAnswerSchema
from .json_schema_reduction import Schema, find_target, reduce_schema
from .retry import RetryPolicy, complete_answer
from .wire import clip

FINAL_ANSWER = "final_answer"

_TOOL_RULE = f"Give your answer by one call of the tool `{FINAL_ANSWER}`, without other text."
_MAX_PROBLEMS = 5
_WRAPPER = "answer"
"""The key of an answer that is no object: vendors want objects."""

_DATA_KEYS = frozenset({"enum", "const", "default", "examples"})
_NAME_KEYS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


def _ignore(usage: Usage) -> None:
    """Do nothing with the tokens."""


async def answer_json(
    provider: Provider,
    request: Request,
    schema: "Mapping[str, Any] | AnswerSchema",
    policy: RetryPolicy = RetryPolicy(),
    record: Callable[[Usage], None] = _ignore,
    attempts: int = 2,
) -> Any:
    """Let a model answer a request without tools in JSON, and return the value, which fits a JSON schema.

    `record` gets the tokens of each answer that arrives, also a wrong one, and of each attempt that failed.

    Raises:
        UsageError: The schema is invalid. No request was sent.
        ProviderError: No answer came, the model declined, the answer was cut, or it was wrong in all attempts.
    """
    wanted = schema if isinstance(schema, AnswerSchema) else AnswerSchema.read(schema)
    messages = list(request.messages)
    problems: Sequence[str] = ()
    for _ in range(attempts):
        answer = await _ask(provider, replace(request, messages=tuple(messages)), wanted, policy, record)
        if answer.is_cut:
            raise ProviderError("the JSON answer was cut at the output limit; raise max_output_tokens, or ask for less")
        value, problems = wanted.parse(_find_text(answer.message))
        if not problems:
            return value
        messages += [answer.message, _explain(answer.message, problems, wanted)]
    raise ProviderError(
        f"the model gave no valid JSON, also after it was told why ({'; '.join(problems)}); "
        "make the schema simpler, or choose another model"
    )


async def _ask(
    provider: Provider, request: Request, wanted: "AnswerSchema", policy: RetryPolicy, record: Callable[[Usage], None]
) -> MessageCompleted:
    reduced: Schema | None = None
    if isinstance(provider, SupportsAnswerSchema):
        dialect = provider.find_schema_dialect(request.model)
        reduced = reduce_schema(wanted.parameters, dialect) if dialect else None
    if reduced is not None:
        try:
            return await complete_answer(provider, replace(request, answer_schema=reduced), policy, record)
        except ProviderError as error:
            if not error.refusal:
                raise
    # The server takes no schema, or not this one.
    tool = ToolSpec(FINAL_ANSWER, "Gives your final answer.", wanted.parameters)
    system = "\n\n".join(filter(None, (request.system, _TOOL_RULE)))
    request_with_tool = replace(request, system=system, tools=(tool,))
    return await complete_answer(provider, request_with_tool, policy, record)


def _find_text(message: Message) -> str:
    """Find the JSON text of an answer: the arguments of the last call, else the text without a fence around it."""
    if message.tool_calls:
        return message.tool_calls[-1].arguments
    return _remove_fence(message.text)


def _remove_fence(text: str) -> str:
    fenced = _FENCE.fullmatch(text)
    return fenced[1] if fenced else text


def _explain(message: Message, problems: Sequence[str], wanted: "AnswerSchema") -> Message:
    """Build the message that sends a wrong answer back."""
    if not message.tool_calls:
        return Message.user(wanted.explain(problems))
    text = f"{_list(problems)}\n\nCall `{FINAL_ANSWER}` once more, with the whole corrected answer."
    results = [ToolResult(call_id=call.id, output=text, is_error=True) for call in message.tool_calls]
    return Message(role="tool", parts=tuple(results))


def _list(problems: Sequence[str]) -> str:
    listed = "\n".join(f"- {problem}" for problem in problems)
    return f"This answer does not fit:\n{listed}"


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """A JSON schema of answers.

    `parameters` is the schema of an object: `schema` itself, or an object with an answer of another type in it.
    """

    schema: Schema
    parameters: Schema
    _validator: Any
    _check: Callable[[Any], Sequence[str]]

    @classmethod
    def read(
        cls, schema: Mapping[str, Any], check: Callable[[Any], Sequence[str]] = lambda value: ()
    ) -> "AnswerSchema":
        """Read a schema. `check` says in sentences what else is wrong with a value that fits.

        Raises:
            UsageError: It is no JSON schema, or refers to something outside of it.
        """
        try:
            copy = json.loads(json.dumps(schema, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the schema of the answer is no JSON ({error}); correct it") from error
        if not isinstance(copy, dict):
            raise UsageError("the schema of the answer is no JSON object; write such as {'type': 'string'}")
        validator = _create_validator(copy)
        _check_references(copy)
        parameters = copy if _is_plain_object(copy) else _wrap(copy)
        return cls(copy, parameters, validator, check)

    @property
    def rule(self) -> str:
        """The sentence that tells a model at work about the schema of its last answer."""
        return (
            "A program reads your final answer. Give it as one JSON value, without any other text, that fits this JSON "
            f"schema:\n{json.dumps(self.schema, ensure_ascii=False)}"
        )

    def explain(self, problems: Sequence[str]) -> str:
        """Write the text that sends a wrong answer back."""
        schema = json.dumps(self.parameters)
        return f"{_list(problems)}\n\nGive the whole corrected answer again, only as JSON for this schema:\n{schema}"

    def read_last_answer(self, messages: Sequence[Message]) -> tuple[Any, Sequence[str]]:
        """Read the text of the last message of the model, as `parse` does. Calls in it are not the answer."""
        text = ""
        for message in messages:
            if message.role == "assistant":
                text = message.text
        return self.parse(_remove_fence(text))

    def parse(self, text: str) -> tuple[Any, Sequence[str]]:
        """Parse the JSON text of an answer; return its value, and at most five sentences on what is wrong with it."""
        try:
            value = json.loads(text, parse_constant=_refuse_constant, parse_float=_read_float)
            if self.parameters is not self.schema and isinstance(value, dict) and value.keys() == {_WRAPPER}:
                value = value[_WRAPPER]
            value = self._drop_nulls(value, self.schema)
            return value, self._list_problems(value)
        except RecursionError:
            return None, ["It is nested too deeply."]
        except OverflowError:
            return None, ["One of its numbers is too large."]
        except ValueError as error:
            return None, [f"It is no JSON: {error}."]

    def _list_problems(self, value: Any) -> list[str]:
        from jsonschema.exceptions import best_match

        errors = sorted(self._validator.iter_errors(value), key=lambda error: error.json_path)
        if not errors:
            return list(self._check(value))[:_MAX_PROBLEMS]
        best = [best_match([error]) for error in errors[:_MAX_PROBLEMS]]
        return [f"At `{error.json_path}`: {clip(error.message, 200)}." for error in best]

    def _drop_nulls(self, value: Any, node: Any) -> Any:
        """Drop optional properties that are null where the schema has no null: the model had to write something."""
        while isinstance(node, dict) and "$ref" in node:
            node = find_target(self.schema, node["$ref"])
        if not isinstance(node, dict):
            return value
        for part in node.get("allOf", ()):
            value = self._drop_nulls(value, part)
        for choice in (*node.get("anyOf", ()), *node.get("oneOf", ())):
            changed = self._drop_nulls(value, choice)
            if self._is_valid(changed, choice):
                value = changed
                break
        if isinstance(value, list):
            return [self._drop_nulls(entry, node.get("items")) for entry in value]
        if not isinstance(value, dict):
            return value
        properties = node.get("properties", {})
        required = node.get("required", ())
        kept = {}
        for key, entry in value.items():
            part = properties.get(key)
            is_filler = entry is None and key in properties and key not in required and not self._is_valid(None, part)
            if not is_filler:
                kept[key] = self._drop_nulls(entry, part)
        return kept

    def _is_valid(self, value: Any, node: Any) -> bool:
        return bool(self._validator.evolve(schema=node).is_valid(value))


def _create_validator(schema: Schema) -> Any:
    # Imported here, because it takes 0.2 s.
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry

    validator_class = validator_for(schema, default=Draft202012Validator)
    try:
        validator_class.check_schema(schema)
    except SchemaError as error:
        raise UsageError(f"the schema of the answer is invalid at `{error.json_path}`: {error.message}") from error
    return validator_class(schema, registry=Registry())  # an empty registry fetches nothing


def _check_references(schema: Schema) -> None:
    """Raise UsageError for a reference that leads out of the schema, to nothing, or in a circle."""
    for node in _list_nodes(schema):
        if "$id" in node and node is not schema:
            raise UsageError("the schema of the answer has an `$id` inside; use `$defs` and '#/$defs/name'")
        followed: list[str] = []
        target: Any = node
        while isinstance(target, dict) and "$ref" in target:
            ref = target["$ref"]
            if ref in followed:
                raise UsageError(f"the schema of the answer has a `$ref` that leads to itself, {ref!r}; correct it")
            followed.append(ref)
            try:
                target = find_target(schema, ref)
            except LookupError:
                raise UsageError(
                    f"the schema of the answer has nothing at its `$ref` {ref!r}; write such as '#/$defs/name'"
                ) from None


def _list_nodes(node: Any, is_names: bool = False) -> Iterator[Schema]:
    """List the parts of a schema that are schemas, and all other mappings in which one may lie."""
    if isinstance(node, list):
        for entry in node:
            yield from _list_nodes(entry)
    if not isinstance(node, dict):
        return
    if not is_names:
        yield node
    for key, value in node.items():
        if is_names or key not in _DATA_KEYS:
            yield from _list_nodes(value, key in _NAME_KEYS and not is_names)


def _is_plain_object(schema: Schema) -> bool:
    combined = {"$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not", "if"}
    return schema.get("type") == "object" and not combined & schema.keys()


def _wrap(schema: Schema) -> Schema:
    """Build the schema of an object whose only property is an answer of any type."""
    shared: Schema = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    inner = {key: value for key, value in schema.items() if key not in shared and key not in ("$schema", "$id")}
    wrapped: Schema = {
        "type": "object",
        "properties": {_WRAPPER: inner},
        "required": [_WRAPPER],
        "additionalProperties": False,
        **shared,
    }
    copy: Schema = json.loads(json.dumps(wrapped))
    for node in _list_nodes(copy):
        ref = node.get("$ref")
        if isinstance(ref, str) and not ref.startswith(("#/$defs/", "#/definitions/")):
            node["$ref"] = f"#/properties/{_WRAPPER}{ref[1:]}"
    return copy


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _read_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise OverflowError(text)
    return number
