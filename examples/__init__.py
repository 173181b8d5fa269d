"""Small applications that use anarchon; start them from the folder above this one."""
