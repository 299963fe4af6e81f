"""Python types as JSON Schema, and values between the two.

Known are `str`, `int`, `float`, `bool`, `None`, `Any`, `list`, `dict`, unions, `Literal`, enums, dataclasses and `File`. In
`Annotated[int, "How many.", {"minimum": 1}]` a text is the description and a dict further words of the schema.
"""

import dataclasses
import enum
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from .error import ToolError
from .file import File

PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
EMPTY = dataclasses.MISSING


def schema(of: Any, output: bool = False) -> dict[str, Any]:
    """The JSON Schema of a type; a file is uploaded as input and offered for download as output."""
    origin, arguments = get_origin(of), get_args(of)
    if isinstance(of, type) and of in PLAIN:
        return {"type": PLAIN[of]}
    if of is Any or of is object:
        return {}
    if of is File:
        return _file(output)
    if origin is Annotated:
        made = schema(arguments[0], output)
        for note in arguments[1:]:
            made |= {"description": note} if isinstance(note, str) else note if isinstance(note, dict) else {}
        return made
    if origin is Literal:
        return _choice(list(arguments))
    if origin in (Union, types.UnionType):
        return _union([schema(one, output) for one in arguments])
    if of is list or origin is list:
        return {"type": "array"} | ({"items": schema(arguments[0], output)} if arguments else {})
    if of is dict or origin is dict:
        values = schema(arguments[1], output) if arguments else {}
        return {"type": "object"} | ({"additionalProperties": values} if values else {})
    if isinstance(of, type) and issubclass(of, enum.Enum):
        return _choice([member.value for member in of])
    if dataclasses.is_dataclass(of):
        hints = get_type_hints(of, include_extras=True)
        return fields([(field.name, hints[field.name], _default(field)) for field in dataclasses.fields(of)], output)
    raise TypeError(f"`{of}` has no JSON Schema; use a dataclass, or `dict[str, Any]` where anything may stand")


def fields(named: list[tuple[str, Any, Any]], output: bool = False) -> dict[str, Any]:
    """The schema of an object: name, type and default of each field."""
    properties = {}
    for name, of, default in named:
        properties[name] = schema(of, output)
        if default is not EMPTY and default is not None and not output:
            properties[name]["default"] = write(default)
    required = [name for name, _, default in named if default is EMPTY or output]
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def read(of: Any, value: Any, place: str) -> Any:
    """A value of a type from JSON."""
    origin, arguments = get_origin(of), get_args(of)
    if origin is Annotated:
        return read(arguments[0], value, place)
    if origin in (Union, types.UnionType):
        return _first(arguments, value, place)
    if of is File:
        return File(value["name"], value["mimetype"], value["s3key"])
    if of is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(of, type) and of in PLAIN:
        fits = isinstance(value, of) and not (of is int and isinstance(value, bool))
        return value if fits else _misfit(place, PLAIN[of])
    if origin is Literal:
        return value if value in arguments else _misfit(place, f"one of {arguments}")
    if origin is list:
        return [read(arguments[0], one, f"{place}[{index}]") for index, one in enumerate(value)]
    if origin is dict:
        return {key: read(arguments[1], one, f"{place}.{key}") for key, one in value.items()}
    if isinstance(of, type) and issubclass(of, enum.Enum):
        return of(value)
    if dataclasses.is_dataclass(of):
        if not isinstance(value, dict):
            return _misfit(place, "an object")
        hints = get_type_hints(of, include_extras=True)
        named = [field.name for field in dataclasses.fields(of) if field.init and field.name in value]
        return of(**{name: read(hints[name], value[name], f"{place}.{name}") for name in named})
    return value


def write(value: Any) -> Any:
    """JSON of a value."""
    if isinstance(value, File):
        return {"name": value.name, "mimetype": value.mimetype, "s3url": value.id}
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: write(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): write(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [write(one) for one in value]
    return value


def _default(field: Any) -> Any:
    if field.default_factory is not EMPTY:
        return field.default_factory()
    return field.default


def _choice(values: list[Any]) -> dict[str, Any]:
    kinds = {PLAIN[type(value)] for value in values}
    return {"enum": values} | ({"type": kinds.pop()} if len(kinds) == 1 else {})


def _union(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    null = {"type": "null"}
    rest = [one for one in schemas if one != null]
    plain = len(rest) == 1 and isinstance(rest[0].get("type"), str) and "enum" not in rest[0]
    if plain and len(rest) < len(schemas):
        return rest[0] | {"type": [rest[0]["type"], "null"]}
    return {"anyOf": schemas}


def _first(choices: tuple[Any, ...], value: Any, place: str) -> Any:
    for choice in choices:
        try:
            return read(choice, value, place)
        except (ToolError, ValueError, TypeError, KeyError, AttributeError):
            continue
    return _misfit(place, "any of its types")


def _misfit(place: str, wanted: str) -> Any:
    raise ToolError.invalid_input(f"`{place}` is not {wanted}")


def _file(output: bool) -> dict[str, Any]:
    flag, place = ("file_downloadable", "s3url") if output else ("file_uploadable", "s3key")
    return {
        "type": "object",
        flag: True,
        "properties": {
            "name": {"type": "string", "description": "Name of the file."},
            "mimetype": {"type": "string", "description": "Media type of the file."},
            place: {"type": "string", "description": "Where the file is."},
        },
        "required": ["name", "mimetype", place],
    }
