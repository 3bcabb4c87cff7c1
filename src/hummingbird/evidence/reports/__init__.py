"""Read test reports in XML as they stream by: JUnit, xUnit and Testing Farm, hostile XML included.

A report is never held whole in memory, and no entity is ever expanded.
"""
