"""Whatever a file, a client or a socket says is read, or refused in the product's own words: in bounded time and memory."""
