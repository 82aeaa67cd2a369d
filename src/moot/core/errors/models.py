"""Errors of model calls. A model's refusal to answer is an answer, not an error.

ModelError                      502  model_error
├── ModelNotConfigured          422  model_not_configured (nothing was called)
├── ModelBadRequest                  model_bad_request (the provider does not take this request)
│   └── ModelWithoutSchemas          model_without_schemas (it is asked in words from now on)
├── ModelAuth                        model_auth (the provider does not take the key)
├── ModelAnswerInvalid               model_answer_invalid (it answered, but not what was asked for)
├── BudgetUsedUp                429  budget_used_up (nothing more is called before a person agrees)
│   ├── DailyBudgetUsedUp            daily_budget_used_up (the tenant's, until midnight)
│   └── MemberBudgetUsedUp           member_budget_used_up (a standing agent's, by day or month)
├── ModelNotRecorded                 model_not_recorded (the recording has no such call)
├── ModelRateLimited            503  model_rate_limited
├── ModelUnavailable            503  model_unavailable
├── ModelDisconnected                model_disconnected (in the middle of an answer)
└── ModelTimeout                504  model_timeout
"""

import math
from typing import Any

from moot.core.errors import MootError


class ModelError(MootError):
    """A model call without an answer; ``passing`` means that a retry may help."""

    code, status = "model_error", 502

    def __init__(self, message: str, wait_s: float | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        #: seconds that the provider asks to wait
        self.wait_s = wait_s
        if wait_s is not None:
            self.retry_after = max(1, math.ceil(wait_s))


class ModelNotConfigured(ModelError):
    code, status = "model_not_configured", 422


class ModelBadRequest(ModelError):
    code = "model_bad_request"


class ModelWithoutSchemas(ModelBadRequest):
    code, passing = "model_without_schemas", True


class ModelAuth(ModelError):
    code = "model_auth"


class ModelAnswerInvalid(ModelError):
    code = "model_answer_invalid"


class BudgetUsedUp(ModelError):
    code, status = "budget_used_up", 429


class DailyBudgetUsedUp(BudgetUsedUp):
    code = "daily_budget_used_up"


class MemberBudgetUsedUp(BudgetUsedUp):
    code = "member_budget_used_up"


class ModelNotRecorded(ModelError):
    code = "model_not_recorded"


class ModelRateLimited(ModelError):
    code, status, passing = "model_rate_limited", 503, True


class ModelUnavailable(ModelError):
    code, status, passing = "model_unavailable", 503, True


class ModelDisconnected(ModelError):
    code, passing = "model_disconnected", True


class ModelTimeout(ModelError):
    code, status, passing = "model_timeout", 504, True
