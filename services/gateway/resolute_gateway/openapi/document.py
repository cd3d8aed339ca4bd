"""The OpenAPI 3.1 document of the JSON calls, for curl and for generators of clients."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.descriptor import MethodDescriptor

from resolute.contracts import distribution
from resolute.contracts.calls.methods import methods, path_of
from resolute_gateway.openapi.schemas import Schemas

_ERROR = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "description": "Such as not_found or permission_denied."},
        "message": {"type": "string"},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "type": {
                        "type": "string",
                        "description": "Name of a message, such as google.rpc.ErrorInfo.",
                    },
                    "value": {"type": "string", "contentEncoding": "base64"},
                    "debug": {"type": "object", "description": "The message in JSON."},
                },
                "required": ["type", "value"],
            },
        },
    },
    "required": ["code", "message"],
}
_DESCRIPTION = (
    "Calls in JSON by the Connect protocol. Calls that stream are not listed: use a Connect or gRPC client."
)


def openapi_document() -> bytes:
    """Makes the document of every call with one request and one answer."""
    schemas = Schemas()
    paths = {
        path_of(method): {"post": _operation(method, schemas)}
        for method in methods()
        if not method.client_streaming and not method.server_streaming
    }
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Resolute", "version": distribution.version(), "description": _DESCRIPTION},
        # Relative, so that it is right behind every proxy.
        "servers": [{"url": "."}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {**schemas.components, "Error": _ERROR},
            "responses": {
                "Error": {
                    "description": "The call failed.",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
            },
        },
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _operation(method: MethodDescriptor, schemas: Schemas) -> dict[str, Any]:
    return {
        "operationId": f"{method.containing_service.full_name}.{method.name}",
        "tags": [method.containing_service.full_name],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schemas.reference(method.input_type)}},
        },
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": {"schema": schemas.reference(method.output_type)}},
            },
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
