"""Code that all judges share: fences around untrusted text, typed verdicts, requests and panels."""
