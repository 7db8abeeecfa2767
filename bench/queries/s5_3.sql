SELECT
  module,
  stage,
  avg(allocated) as avg_memory,
  count(*) as execution_count
FROM python.torch_trace
WHERE module IS NOT NULL
GROUP BY module, stage
ORDER BY avg_memory DESC
LIMIT 10;
