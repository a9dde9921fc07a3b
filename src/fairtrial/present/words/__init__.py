"""Sentences and table cells shared by the terminal, Markdown, HTML reports and web pages."""
