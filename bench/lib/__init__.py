"""The benchmark harness: processes, data, measurements, results. Scenarios are the modules of `scenarios`."""
