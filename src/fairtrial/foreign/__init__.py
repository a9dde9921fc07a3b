"""What other tools wrote, as values: their suites (`suites`), their results (`results`) and the files (`source`)."""
