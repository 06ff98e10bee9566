"""The transfer experiments of the USE paper: rows, splits, cells and the tables they fill."""
