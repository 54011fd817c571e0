"""Telling: one document as text, JSON, Markdown, JUnit XML or HTML. Nothing here prints, or knows where the words go."""
