"""The timed loops, one module a library; each runs where that library is installed."""
