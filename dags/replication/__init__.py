"""A shop's database that is in use while it is replicated: temporary servers, their writers, and the comparison.

`demo` and `compare` are for any source; `postgresql` and `mariadb` have a source each, with the same modules.
"""
