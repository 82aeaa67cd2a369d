"""Council members at work: context, concurrency, tasks."""
