"""`python -m strata ...` is the command."""

from ._command import main

main()
