import pytest

# What fails in a contract then says what was compared, as in the files of the kinds.
pytest.register_assert_rewrite("tests.stores.contract", "tests.stores.sealed_contract")
