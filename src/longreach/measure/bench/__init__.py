"""Load, timing and truth of a benchmark run: requests sent as a workload says, recorded as they end, summed up."""
