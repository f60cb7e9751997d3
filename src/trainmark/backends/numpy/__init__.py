"""The reference: plain NumPy, float32 for use and float64 as the oracle that every other backend is held against."""
