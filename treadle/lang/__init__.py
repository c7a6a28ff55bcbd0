"""Floor 7: where the compiler tower and the machine tower meet: kernels, functions, structs, launches."""
