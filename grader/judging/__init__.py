"""The rule book: outcomes → verdicts, measurements → scores. Pure."""
