"""Settings of Django's tests for its stock PostgreSQL backend; `run.py` starts them and says where the two servers are."""

import json
import os
import unittest

from django.contrib.postgres.operations import CreateExtension
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test.runner import DiscoverRunner

DATABASES = {
    alias: {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": "127.0.0.1",
        "PORT": os.environ[f"STOCK_{alias.upper()}_PORT"],
        "USER": "suite",
        "NAME": "bowshot",
        "TEST": {"NAME": "bowshot"},
    }
    for alias in ("default", "other")
}
SECRET_KEY = "of tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "stock_settings.Runner"

# Without these no test would run, since Django makes the tables of all of them first: there is no type `inet`, no
# extension, and no `setval`, by which Django sets the sequences of its tables behind their rows.
CreateExtension.database_forwards = lambda *arguments: None
DatabaseWrapper.data_types["GenericIPAddressField"] = "varchar(39)"
DatabaseOperations.sequence_reset_sql = lambda self, style, models: []


class Result(unittest.TextTestResult):
    """Keeps how each test ended: `passed`, `skipped`, or its errors."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.ends = {}

    def keep(self, test, end):
        earlier = self.ends.get(test.id())
        self.ends[test.id()] = f"{earlier}\n{end}" if earlier not in (None, "passed", "skipped") else end

    def addSuccess(self, test):
        super().addSuccess(test)
        self.ends.setdefault(test.id(), "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.ends.setdefault(test.id(), "skipped")

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.ends.setdefault(test.id(), "skipped")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.keep(test, "passes where Django expects a failure")

    def addError(self, test, error):
        super().addError(test, error)
        self.keep(test, self.errors[-1][1])

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.keep(test, self.failures[-1][1])

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.keep(test, self._exc_info_to_string(error, test))


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Result

    def suite_result(self, suite, result, **options):
        with open(os.environ["STOCK_REPORT"], "w") as report:
            json.dump(result.ends, report)
        return super().suite_result(suite, result, **options)
