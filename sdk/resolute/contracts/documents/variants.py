"""Sections that have several kinds, selected by the value of one field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from resolute.contracts.documents.faults import describe
from resolute.contracts.documents.rejections import (
    combined_error,
    located_error,
    nameable,
    reject,
    suggestion,
    to_init_error,
    unknown,
)
from resolute.contracts.documents.section import Section


def choose(
    tag: str,
    *,
    common: type[Section],
    variants: Mapping[str, type[Section]],
    removed: Mapping[str, Callable[[Mapping[str, Any]], str]] | None = None,
) -> Callable[[Any], Section]:
    """Make the validator of a section that comes in variants.

    Where the tag is missing or wrong, the fields that all variants share are checked all the same, so that
    one message lists all that is wrong.

    Args:
        tag: The field that tells the variants apart.
        common: The fields that all variants share.
        variants: The variant for each value of the tag.
        removed: Values that once existed, each with a function that says what to use instead of a section.
    """

    def validate(data: Any) -> Section:
        if isinstance(data, common):
            return data
        if not isinstance(data, dict):
            raise reject(f"a map whose {tag} is one of {', '.join(variants)}")
        value = data.get(tag)
        if isinstance(value, str) and value in variants:
            return variants[value].model_validate(data)
        instead = (removed or {}).get(value) if isinstance(value, str) else None
        if instead is None:
            wrong = located_error((tag,), value, _tag_error(value, variants))
            raise combined_error([wrong, *_shared_faults(data, tag, common, variants)])
        gone = reject("", problem=f"{value} was removed, use {instead(data)}")
        # The other fields of a variant that was removed went with it.
        given = {key: data[key] for key in data if key in common.model_fields}
        raise combined_error(
            [located_error((tag,), value, gone), *_shared_faults(given, tag, common, variants)]
        )

    return validate


def _tag_error(value: Any, variants: Mapping[str, object]) -> PydanticCustomError:
    expected = f"one of {', '.join(variants)}"
    if value is None:
        return reject(expected, problem="missing", incomplete=True)
    hint = suggestion(value, variants) if isinstance(value, str) else ""
    return reject(expected, problem=f"found {describe(value)}", hint=hint)


def _shared_faults(
    data: Mapping[str, Any], tag: str, common: type[Section], variants: Mapping[str, type[Section]]
) -> Iterator[InitErrorDetails]:
    known = {field for variant in variants.values() for field in variant.model_fields} | {tag}
    is_open = any(variant.model_config.get("extra") == "allow" for variant in variants.values())
    is_open = is_open and data.get(tag) is None
    strangers = [] if is_open else [key for key in data if key not in known]
    names = nameable(strangers, known)
    for key in strangers:
        yield located_error((key,), data[key], unknown(key, names, advice=common.advice.get(key, "")))
    try:
        common.model_validate({key: data[key] for key in data if key in common.model_fields and key != tag})
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            if detail["loc"] != (tag,):
                yield to_init_error(detail)
