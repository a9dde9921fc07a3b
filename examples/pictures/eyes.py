"""Stand in for models with and without eyes. `files` are the images and PDFs of a case."""

import re
import zlib


def looks(user_query, system_prompt, mcp_servers, files):
    """Name the colour of the first pixel of a PNG, or answer from the text in the question."""
    for file in files:
        start = file.body.index(b"IDAT") + 4
        red, green, blue = zlib.decompressobj().decompress(file.body[start:])[1:4]
        return "It is red." if red > max(green, blue) else "It is not red."
    return _monday(user_query)


def guesses(user_query, system_prompt, mcp_servers, files):
    """Guess from the name of the file."""
    return f"It is a {files[0].name.split('.')[0]}." if files else _monday(user_query)


def _monday(text):
    found = re.search(r"Monday: (\w+)", text)
    return found[1] if found else "I do not know."
