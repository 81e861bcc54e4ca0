"""The smoke test of the benchmark: `checks` runs and judges it, `browser` asks Chromium."""
