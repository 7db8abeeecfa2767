#include "cli/plot.h"
int tmk_plot_heatmap(const struct tmk_plot *plot)
{
    (void)plot;
    return 1;
}
