"""How OpenAI, and servers that imitate it, put an error into words. Both OpenAI surfaces share it,
and the one parameter whose rules are the same for both.
"""

from tests.standins.vendors.models import Gpt
from tests.standins.vendors.refusals import Raw, Refusal
from tests.standins.vendors.script import Fault
from tests.standins.vendors.surfaces import Conduct

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    403: "permission_error",
    404: "invalid_request_error",
    408: "timeout_error",
    409: "conflict_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
}
ERROR_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> Refusal:
    return Refusal(400, "invalid_request_error", message, param=param, code=code)


def error_body(refusal: Refusal, conduct: Conduct) -> Raw | str:
    # facts/llm.md 3, compatible servers: {"detail": …} and {"object": "error", …} occur beside OpenAI's own shape
    if conduct.has("detail_errors"):
        return {"detail": refusal.message}
    if conduct.has("object_errors"):
        return {"object": "error", "message": refusal.message, "type": "BadRequestError", "code": refusal.status}
    if conduct.openai == "compatible":
        return {"error": {"message": refusal.message}}
    error = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
    return {"error": error}


def failed(fault: Fault) -> Refusal:
    usual = ERROR_TYPES.get(fault.status, "server_error")
    code = fault.code or (None if fault.type else ERROR_CODES.get(fault.status))
    if fault.type == "insufficient_quota":
        # facts/llm.md 3: an exhausted quota is a 429 whose code says so
        code = "insufficient_quota"
    return Refusal(fault.status, fault.type or usual, fault.message, code=code)


def error_object(fault: Fault) -> Raw:
    """The error object that a 200 stream or body may carry."""
    type_ = fault.type or "server_error"
    return {"message": fault.message, "type": type_, "param": None, "code": fault.code or fault.status}


def check_cache_options(body: Raw, model: Gpt) -> None:
    options = body.get("prompt_cache_options")
    if options is None:
        return
    if not model.bills_cache_writes:
        # facts/llm.md 3: prompt_cache_options exist from gpt-5.6 on
        text = "Unsupported parameter: 'prompt_cache_options' is not supported with this model."
        raise invalid(text, param="prompt_cache_options", code="unsupported_parameter")
    known = isinstance(options, dict) and options.get("mode") in (None, "implicit", "explicit")
    if not known or options.get("ttl") not in (None, "30m", "12h"):
        # facts/llm.md 3: mode implicit or explicit, ttl 30m or 12h
        raise invalid("Invalid value for 'prompt_cache_options'.", param="prompt_cache_options")
