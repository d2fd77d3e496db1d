"""What the functions of the Python interface take and return: arguments in many forms, results that show themselves."""
