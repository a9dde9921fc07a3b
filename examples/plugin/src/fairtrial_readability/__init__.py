"""How easy answers are to read: a plug-in for fairtrial."""
