"""From the wings' configuration to resolved runs: what fits with what, identities, resources, vocabularies."""
