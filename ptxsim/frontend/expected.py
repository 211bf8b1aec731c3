"""What the reader expects at some place of the PTX; complaints name it."""

from __future__ import annotations

from ptxsim.message import phrase, verbatim

NAME = phrase("a name")
TYPE = phrase("a type")
REGISTERS = phrase("a number of registers")
STRING = phrase("a string")
INSTRUCTION = phrase("an instruction")
LABEL = phrase("a label")
PREDICATE = phrase("a predicate")
INTEGER = phrase("an integer of 64 bits at most")
ALIGNMENT = phrase("an alignment")
ELEMENTS = phrase("a number of elements")
VERSION = phrase("a version")
SECTION = phrase("the name of a section")
DATA = phrase("data of a section")
NUMBER = phrase("a number")
ARCHITECTURE = phrase("an architecture")
TARGET = phrase("an option of .target")
FILE = phrase("the name of a file")
TIME = phrase("a time")
SIZE = phrase("a size")
OFFSET = phrase("an offset")
OPERAND = phrase("an operand")
WIDTH = verbatim("64")
