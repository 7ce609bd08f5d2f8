"""What runs inside the kernel and nowhere else: it imports the standard library and IPython only."""
