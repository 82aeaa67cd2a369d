"""What a tool that did not work says: a code, a sentence, and what goes with it."""

from typing import Any


class ToolError(Exception):
    """Becomes the tool's result; the turn goes on, and the model reads it."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details

    def as_payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = {"code": self.code, "message": self.message[:2000]}
        if self.details:
            payload["details"] = self.details
        return payload
