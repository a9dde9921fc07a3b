"""What other tools wrote, as values: suites, results, traces, and the files (`source`) that they are in."""
