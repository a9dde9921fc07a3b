import shapes

assert callable(shapes.area)
