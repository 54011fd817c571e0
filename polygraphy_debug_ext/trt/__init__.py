"""The only room that meets TensorRT: one build, the algorithm selectors, what an engine says about its layers."""
