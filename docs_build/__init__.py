"""Extensions of the documentation build: the gallery, formulas, and the arguments on the API pages."""
