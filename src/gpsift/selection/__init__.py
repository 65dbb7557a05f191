"""From a ranking to a decision: search over submodels, their size, projection and stability."""
