"""The tasks that are audited have tests of their own, which are none of ours."""

collect_ignore = ["tasks"]
