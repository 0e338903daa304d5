"""Rankings and judgements to figures."""
