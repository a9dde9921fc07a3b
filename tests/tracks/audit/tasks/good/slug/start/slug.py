def slug(text):
    raise NotImplementedError
