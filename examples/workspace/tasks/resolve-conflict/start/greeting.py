def greet(name):
<<<<<<< HEAD
    return f"Hello, {name}!"
=======
    return "Good day, " + name.title()
>>>>>>> polite
