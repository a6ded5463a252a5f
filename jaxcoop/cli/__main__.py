"""`python -m jaxcoop.cli` is the `jaxcoop` command."""

from jaxcoop.cli.main import main

main()
