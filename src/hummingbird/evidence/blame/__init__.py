"""What is to blame: rules that can be named, and a verdict that a person can disagree with.

Owns: the rules, what each is worth, the verdict for a region and for a job.
May touch: domain, and evidence's regions.
Never: how lines were found.
"""
