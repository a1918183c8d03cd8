"""Counterweight's speed beside that of other libraries, measured in one run."""
