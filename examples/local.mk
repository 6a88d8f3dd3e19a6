# Examples.
