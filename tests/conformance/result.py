"""What a suite of others says of itself to `cargo xtask test`, which names the file in BOWSHOT_RESULT."""

import json
import os
import pathlib


def write(passed, failed, excluded, unit="test"):
    """How many passed, pairs of test and reason of those that failed, and by reason how many are known not to pass."""
    if "BOWSHOT_RESULT" in os.environ:
        left_out = [{"test": f"{count} {unit}{'s' * (count > 1)}", "reason": reason} for reason, count in excluded]
        result = {"passed": passed, "failed": [{"test": test, "reason": reason} for test, reason in failed], "excluded": left_out}
        pathlib.Path(os.environ["BOWSHOT_RESULT"]).write_text(json.dumps(result))
