"""SavedModels that take strings and give vectors, and their cards."""
