"""Telling: findings as lines of text. Nothing here prints, or knows where the lines go."""
