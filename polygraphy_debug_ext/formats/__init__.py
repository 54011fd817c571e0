"""Bytes to model and back, one file per format. Nothing here needs TensorRT or Polygraphy."""
