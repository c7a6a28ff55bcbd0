"""Floor 3: the builtins of the language, one record each. See ``registry``."""
