"""Numbers in words: the sentences and table cells that terminal, Markdown, HTML and web page share."""
