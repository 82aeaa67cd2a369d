"""Operations of the API, one function for each route."""
