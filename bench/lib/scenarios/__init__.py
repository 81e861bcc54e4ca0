"""One module for each scenario; `lib/registry.py` lists them."""
