"""Reads PTX: the only place that gives a PTX text its meaning.

The layouts of kernel parameters, the sizes of symbols and the simulated instructions all come from
here. ptxas makes the cubin from the same bytes, so this reader rejects any text that ptxas would
read differently. tokens.py splits the text, reader.py reads declarations, body.py functions.
"""
