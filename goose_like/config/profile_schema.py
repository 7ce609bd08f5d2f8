"""JSON Schema of `profiles.yaml` for editors, including the short forms of values."""

from typing import Any

from .profile import Profile


def build_profiles_schema() -> dict[str, Any]:
    """Build the schema (draft 2020-12) of a file that maps names to profiles. `$defs/Profile` describes one profile."""
    profile = _remove_titles(Profile.model_json_schema())
    definitions: dict[str, Any] = profile.pop("$defs")
    keys: dict[str, Any] = profile["properties"]
    del keys["name"]  # the key or the file name is the profile's name
    keys["extends"] = {"type": "string", "description": "another profile whose values this one inherits"}
    keys["provider"] = {"type": "string", "description": "older form: the provider of bare model names"}
    for role in ("processor", "accelerator", "moderator"):
        keys[role] = _allow_name(keys[role])
    named = {"type": "object", "additionalProperties": {"type": "string"}}
    toolkit = _allow_name(keys["toolkits"]["items"])
    toolkit["anyOf"].append({"type": "array", "prefixItems": [{"type": "string"}, named], "minItems": 2, "maxItems": 2})
    keys["toolkits"]["items"] = toolkit
    for definition in definitions.values():
        definition.pop("required", None)  # a profile inherits keys that it leaves out
    definitions["ToolkitChoice"]["required"] = ["name"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "profiles of goose_like",
        "type": "object",
        "properties": {"use": {"type": "string", "description": "the default profile"}},
        "additionalProperties": {"$ref": "#/$defs/Profile"},
        "$defs": {**definitions, "Profile": profile},
    }


def _allow_name(schema: dict[str, Any]) -> dict[str, Any]:
    forms = schema.pop("anyOf", None) or [{"$ref": schema.pop("$ref")}]
    return {"anyOf": [{"type": "string"}, *forms], **schema}


def _remove_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: _remove_titles(v) for k, v in schema.items() if not (k == "title" and isinstance(v, str))}
    return [_remove_titles(item) for item in schema] if isinstance(schema, list) else schema
