"""Front doors, one file per subtool: options, one call into the rooms below, one report.

Polygraphy imports these at every start, whatever command it was given: what is heavy is imported when a subtool runs.
"""
