"""The playbook's language: from a YAML file to a `Playbook`, from its references to values, and what its data decides.

A playbook chooses and parametrises, and Python judges: there are no expressions, no templates and no code in it.
"""
