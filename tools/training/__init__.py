"""Training of the demonstration models: each stage is a module with a settings file in config/."""
