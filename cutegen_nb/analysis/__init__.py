"""Pure judgements: numbers and source in, findings out. Imports core and the standard library only."""
