"""Makes the cases' checks explain themselves when they fail."""

import pytest

pytest.register_assert_rewrite("tests.contracts.sessions.cases", "tests.contracts.sessions.stage")
