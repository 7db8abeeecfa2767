SELECT
  step,
  avg(allocated) as avg_memory_mb,
  max(allocated) as peak_memory_mb,
  min(allocated) as min_memory_mb
FROM python.torch_trace
WHERE step IS NOT NULL
GROUP BY step
ORDER BY step;
