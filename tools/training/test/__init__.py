"""Two steps of every stage on sound that is made up."""
