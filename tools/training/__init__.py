"""Where the demonstration models come from: each stage is a module, its settings a file in config/."""
