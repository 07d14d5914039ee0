"""One module a plot: values to a `Plot` or to a sentence that says why there is none. Pure."""
