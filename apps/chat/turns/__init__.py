"""One turn: a question on its way to an answer, whoever listens."""
