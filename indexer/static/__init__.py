"""Static encoders: a table look-up and a weighted mean."""
