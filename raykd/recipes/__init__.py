"""Recipes: the wings' configurations joined into resolved runs, with faults, identities, resources, vocabularies."""
