"""SavedModels of other origins, which are trained through their own variables."""
