/* SPDX-License-Identifier: MIT */
/* forecast/device_forecast_text.c - what to do about a device's forecast. In Chinese for the causes
 * that are known of a device as a whole. */
#include <stddef.h>

#include "base/array.h"
#include "forecast/device_forecast.h"
#include "forecast/oom_forecast.h"

static const char *const medium_growth_zh[] = {
    "查找增长原因: tidemark attach PID, 然后 tidemark leak PID"};

static const char *const advice_zh[][3] = {
    [TMK_GROWTH_STEADY] =
        {"准备释放缓存", "考虑减少batch size",
         "尽快保存检查点，并查找增长原因: tidemark attach PID, 然后 tidemark leak "
         "PID"},
    [TMK_GROWTH_NEARLY_FULL] = {"准备释放缓存", "考虑减少batch size"},
    [TMK_GROWTH_FULL] = {"内存已满: 立即释放缓存或减少batch size", "查看占用者: tidemark top"},
    [TMK_GROWTH_RAN_OUT] = {"查看原因: tidemark explain RUN", "重试前释放缓存或减少batch size"},
};

const char *tmk_device_forecast_advice(const struct tmk_device_forecast *f, unsigned i)
{
    return tmk_growth_cause_advice(f->cause, f->risk_level, i);
}

const char *tmk_device_forecast_advice_zh(const struct tmk_device_forecast *f, unsigned i)
{
    if (f->cause == TMK_GROWTH_STEADY && f->risk_level == TMK_RISK_MEDIUM)
        return i < TMK_N(medium_growth_zh) ? medium_growth_zh[i] : NULL;
    return f->cause < TMK_N(advice_zh) && i < TMK_N(advice_zh[0]) ? advice_zh[f->cause][i] : NULL;
}
