"""What `make docs` runs beside mkdocs: the gallery, formulas, and the arguments of the API pages."""
