"""What `twindex demo` asks: questions in which only the context tells which sense of a word is meant."""

QUESTIONS = (
    "fishing from the bank at dusk",
    "the bank turned down our loan",
    "which singer has the deepest bass voice",
)
