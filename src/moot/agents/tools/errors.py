"""The error of a tool call: a code, a message and details."""

from typing import Any


class ToolError(Exception):
    """A failed tool call. It becomes the result that the model reads; the turn continues."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details

    def as_payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = {"code": self.code, "message": self.message[:2000]}
        if self.details:
            payload["details"] = self.details
        return payload
