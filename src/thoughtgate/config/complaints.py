"""What pydantic found wrong, in words that name the key, the value and what would be right."""

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from thoughtgate.config.document import Path
from thoughtgate.policy.redaction import MASK, Redactor

MAX_SHOWN: Final = 60
"""Characters of a wrong value that are quoted."""

_REDACTOR: Final = Redactor()

_HINTS: Final = {
    "token": "never write a secret into the file: put it into an environment variable and name that in token_env",
    "secret": "never write a secret into the file: put it into an environment variable and name that in secret_env",
}

_MESSAGES: Final = {
    "missing": "required, and missing",
    "string_type": "must be a text; put it in quotes",
    "string_too_short": "must not be empty",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must hold keys and values",
    "model_type": "must hold keys and values",
    "model_attributes_type": "must hold keys and values",
    "too_short": "must not be empty",
}


def shown(path: Path, value: Any) -> str:
    """Return a value as it may be quoted in a complaint: short, and never a secret."""
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    masked = _REDACTOR.mask_value({name: value})
    text = json.dumps(next(iter(masked.values())), ensure_ascii=False, default=str)
    if MASK in text:
        return "a value that is not shown"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def complaints(error: ValidationError, root: type[BaseModel]) -> Iterator[tuple[Path, str]]:
    """Yield path and words for everything pydantic found."""
    for found in error.errors(include_url=False):
        path = tuple(part for part in found["loc"] if part != "[key]")
        yield path, _words(path, found, root)


def _words(path: Path, found: Mapping[str, Any], root: type[BaseModel]) -> str:
    kind, context, value = found["type"], found.get("ctx", {}), found["input"]
    if kind == "extra_forbidden":
        return _unknown_key(path, root)
    if kind == "missing":
        return _MESSAGES[kind]
    if kind == "literal_error":
        message = f"unknown value; must be {context['expected']}"
    elif kind == "value_error":
        message = str(context["error"])
    elif kind in {"greater_than_equal", "less_than_equal"}:
        message = _range(path, context)
    elif kind == "string_pattern_mismatch":
        message = _form(path)
    else:
        message = _MESSAGES.get(kind, found["msg"])
    return f"{message} (got {shown(path, value)})"


def _range(path: Path, context: Mapping[str, Any]) -> str:
    if path and str(path[-1]).endswith("port"):
        return "must be a valid port number, 1 to 65535"
    if "ge" in context:
        return f"must be at least {context['ge']}"
    return f"must be at most {context['le']}"


def _form(path: Path) -> str:
    if path and str(path[-1]).endswith("_env"):
        return "must be the name of an environment variable, not its value"
    return "must be . _ __ / : or -, at most three of them"


def _unknown_key(path: Path, root: type[BaseModel]) -> str:
    key = str(path[-1])
    if key in _HINTS:
        return _HINTS[key]
    known = sorted(_known_keys(path[:-1], root))
    close = difflib.get_close_matches(key, known, n=1)
    if close:
        return f"unknown key; did you mean {close[0]}?"
    return f"unknown key; known here are {', '.join(known)}"


def _known_keys(path: Path, root: type[BaseModel]) -> set[str]:
    """Return the keys of the model at a path, by following the fields' types."""
    model = root
    for part in path:
        info = model.model_fields.get(str(part))
        if info is not None:
            model = _model_in(info.annotation) or model
    return {info.alias or name for name, info in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside ``dict[str, M]``, ``list[M]`` or ``M | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(one) for one in getattr(annotation, "__args__", ()))
    return next((one for one in inner if one is not None), None)
