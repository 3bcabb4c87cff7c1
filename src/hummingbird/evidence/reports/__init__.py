"""Test reports in XML, read as they stream by.

Owns: the dialects of JUnit and xUnit, Testing Farm's among them; hostile XML.
May touch: domain, and evidence's regions and fingerprints.
Never: a whole report in memory, or an entity expanded.
"""
