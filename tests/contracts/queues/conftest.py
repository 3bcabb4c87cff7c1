"""Makes the cases' checks explain themselves when they fail."""

import pytest

pytest.register_assert_rewrite("tests.contracts.queues.cases", "tests.contracts.queues.stage")
