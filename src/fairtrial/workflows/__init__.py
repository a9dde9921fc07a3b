"""What users do with a suite or a run: resume, rescore, calibrate, label, vote, pair, draft, estimate."""
