"""Modules shared by the commands: the catalogue of models, the kinds of targets, tables of results."""
