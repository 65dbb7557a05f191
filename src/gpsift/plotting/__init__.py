"""Pictures of results. Everything here reads records and computes nothing."""
