"""What an audit hands to others: its verdicts with their controls, rates by group, model cards, data sheets, hashes."""
