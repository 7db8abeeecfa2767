#include "cli/plot.h"
int tmk_plot_forecast(const struct tmk_plot *plot)
{
    (void)plot;
    return 1;
}
