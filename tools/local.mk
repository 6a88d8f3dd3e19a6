# The strata command, one file per subcommand.
