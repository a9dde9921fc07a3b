"""`python -m fairtrial`."""

from fairtrial.cli.program import main

main()
