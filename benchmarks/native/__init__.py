"""The judge's times beside those of a program that calls run_custom itself."""
