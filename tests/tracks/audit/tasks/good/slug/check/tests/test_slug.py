from slug import slug


def test_words_are_joined():
    assert slug("Hello, World!") == "hello-world"


def test_ends_are_clean():
    assert slug("  A b  ") == "a-b"
