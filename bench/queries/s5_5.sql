-- 查找内存波动最大的操作
SELECT
  module,
  stage,
  stddev(allocated) as memory_variance,
  max(allocated) - min(allocated) as memory_range
FROM python.torch_trace
GROUP BY module, stage
HAVING stddev(allocated) > 10
ORDER BY memory_variance DESC;
