"""Makes the stage's checks explain themselves when they fail."""

import pytest

pytest.register_assert_rewrite("tests.agent.stage")
