#include "cli/plot.h"
int tmk_plot_operations(const struct tmk_plot *plot)
{
    (void)plot;
    return 1;
}
