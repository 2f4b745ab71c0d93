"""The version that is installed; pyproject.toml is where it is written."""

import importlib.metadata

VERSION = importlib.metadata.version("dsgnar")
