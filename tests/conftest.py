"""Makes the cases' checks explain themselves when they fail."""

import pytest

pytest.register_assert_rewrite(
    "tests.contracts.sandboxes", "tests.contracts.queues.cases", "tests.contracts.queues.stage", "tests.agent.stage"
)
