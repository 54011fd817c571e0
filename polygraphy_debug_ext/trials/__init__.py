"""Doing, safely: the one loop, builds in a process of their own, checks, artifacts, the journal.

Knows neither TensorRT nor Polygraphy: who builds, who watches and what comes next are Protocols (`ports.py`).
"""
