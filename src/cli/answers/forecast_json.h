/* SPDX-License-Identifier: MIT */
/* cli/answers/forecast_json.h - a forecast as JSON, with the names of the table's columns. */
#ifndef TMK_CLI_ANSWERS_FORECAST_JSON_H
#define TMK_CLI_ANSWERS_FORECAST_JSON_H

#include "kit/json.h"
#include "passes/forecast.h"

/* An object, or null where nothing is known; `f` may be NULL. */
void tmk_forecast_write(struct tmk_json *j, const char *key, const struct tmk_forecast *f);

#endif
