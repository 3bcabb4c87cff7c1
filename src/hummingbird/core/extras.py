"""Name the command that installs what an optional feature needs and a plain install does not bring."""

from importlib.util import find_spec

from hummingbird.core.errors import MissingSetting


def require_extra(module: str, extra: str, feature: str) -> None:
    """Check, without importing it, that the module is installed. `feature` begins the sentence: "An SQS queue".

    Raises MissingSetting.
    """
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise MissingSetting(
            f"{feature} needs packages that a plain install leaves out: pip install 'hummingbird-agent[{extra}]'."
        )
