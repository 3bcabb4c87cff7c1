"""What we ask of the forge, the write side. Imported by forge, service and assembly alone.

Holds nothing yet: it is here so that the import contract guards it from the first day.
"""
