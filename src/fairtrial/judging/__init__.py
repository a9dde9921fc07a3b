"""What judges share: fences around untrusted text, typed verdicts, asking, panels."""
