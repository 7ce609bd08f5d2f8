"""The JSON Schema of `profiles.yaml`, for editors: what the models say, and the shorter forms that are read as well."""

from typing import Any

from .profile import Profile


def build_profiles_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a file that maps names to profiles; that of one profile is in its `$defs`."""
    profile = _without_titles(Profile.model_json_schema())
    definitions: dict[str, Any] = profile.pop("$defs")
    keys: dict[str, Any] = profile["properties"]
    del keys["name"]  # a profile's name is its key, or its file's name
    keys["extends"] = {"type": "string", "description": "another profile, which this one is laid over"}
    keys["provider"] = {"type": "string", "description": "the older form: the provider of bare model names"}
    for role in ("processor", "accelerator", "moderator"):
        keys[role] = _or_name(keys[role])
    named = {"type": "object", "additionalProperties": {"type": "string"}}
    toolkit = _or_name(keys["toolkits"]["items"])
    toolkit["anyOf"].append({"type": "array", "prefixItems": [{"type": "string"}, named], "minItems": 2, "maxItems": 2})
    keys["toolkits"]["items"] = toolkit
    for definition in definitions.values():
        definition.pop("required", None)  # what a mapping leaves out may stand in what it extends
    definitions["ToolkitChoice"]["required"] = ["name"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "profiles of goose_like",
        "type": "object",
        "properties": {"use": {"type": "string", "description": "the profile that is taken when none is named"}},
        "additionalProperties": {"$ref": "#/$defs/Profile"},
        "$defs": {**definitions, "Profile": profile},
    }


def _or_name(schema: dict[str, Any]) -> dict[str, Any]:
    forms = schema.pop("anyOf", None) or [{"$ref": schema.pop("$ref")}]
    return {"anyOf": [{"type": "string"}, *forms], **schema}


def _without_titles(schema: Any) -> Any:
    """Titles that pydantic makes of names say nothing that the name does not."""
    if isinstance(schema, dict):
        return {k: _without_titles(v) for k, v in schema.items() if not (k == "title" and isinstance(v, str))}
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema
