/* SPDX-License-Identifier: MIT */
/* forecast/device_forecast_text.c - what to do about a device's forecast: less where the risk is
 * medium than where it is high. */
#include <stddef.h>

#include "base/array.h"
#include "forecast/device_forecast.h"
#include "forecast/oom_forecast.h"

static const char *const medium_growth[] = {
    "find what grows: tidemark attach PID, then tidemark leak PID"};
static const char *const medium_growth_zh[] = {
    "查找增长原因: tidemark attach PID, 然后 tidemark leak PID"};

static const char *const advice_zh[][3] = {
    [TMK_GROWTH_STEADY] = {"准备释放缓存", "考虑减少batch size",
                           "尽快保存检查点，并查找增长原因: tidemark attach PID, 然后 tidemark leak "
                           "PID"},
    [TMK_GROWTH_NEARLY_FULL] = {"准备释放缓存", "考虑减少batch size"},
    [TMK_GROWTH_FULL] = {"内存已满: 立即释放缓存或减少batch size", "查看占用者: tidemark top"},
    [TMK_GROWTH_RAN_OUT] = {"查看原因: tidemark explain RUN", "重试前释放缓存或减少batch size"},
};

static bool is_medium_growth(const struct tmk_device_forecast *f)
{
    return f->cause == TMK_GROWTH_STEADY && f->risk_level == TMK_RISK_MEDIUM;
}

const char *tmk_device_forecast_advice(const struct tmk_device_forecast *f, unsigned i)
{
    if (is_medium_growth(f))
        return i < TMK_N(medium_growth) ? medium_growth[i] : NULL;
    return tmk_growth_cause_advice(f->cause, i);
}

const char *tmk_device_forecast_advice_zh(const struct tmk_device_forecast *f, unsigned i)
{
    if (is_medium_growth(f))
        return i < TMK_N(medium_growth_zh) ? medium_growth_zh[i] : NULL;
    return f->cause < TMK_N(advice_zh) && i < TMK_N(advice_zh[0]) ? advice_zh[f->cause][i] : NULL;
}
