"""Writes the evidence of an audit: verdicts with their controls, rates by group, model cards, data sheets, hashes."""
