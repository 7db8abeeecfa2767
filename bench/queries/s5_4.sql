WITH memory_trend AS (
  SELECT
    step,
    max(allocated) as peak_memory,
    LAG(max(allocated)) OVER (ORDER BY step) as prev_peak
  FROM python.torch_trace
  GROUP BY step
)
SELECT step, peak_memory, prev_peak,
       peak_memory - prev_peak as growth
FROM memory_trend
WHERE peak_memory > prev_peak
ORDER BY step;
