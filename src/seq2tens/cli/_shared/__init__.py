"""What verbs share: models as plain data, what labels are, results as tables."""
