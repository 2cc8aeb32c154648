"""Real servers for the tests and benchmarks, each started for what it is asked."""
