/* SPDX-License-Identifier: MIT */
/* model/cells.h - the numbers of a notebook's cells.
 *
 * Jupyter compiles a cell under a name made of a hash of its text, "/tmp/ipykernel_71/2203.py".
 * Only IPython knows which number the cell had, so the recorder asks it and defines a text for each
 * cell (docs/format.md, 2.1): "In [12]\t/tmp/ipykernel_71/2203.py". Such a file is then shown as
 * "/tmp/ipykernel_71/In [12]". A text that ran as several cells has the number of the last. */
#ifndef TMK_MODEL_CELLS_H
#define TMK_MODEL_CELLS_H

struct tmk_reader;
struct tmk_cells; /* of a process */

/* Collect them from the texts of a trace. Returns 0, with NULL in *ret_cells if there are none, or
 * TMK_ENOMEM. */
int tmk_cells_open(const struct tmk_reader *r, struct tmk_cells **ret_cells);
struct tmk_cells *tmk_cells_close(struct tmk_cells *cells); /* takes NULL, returns NULL */

/* The name to show for a file: that of its cell, borrowed until close, or `file` itself. Both may
 * be NULL. */
const char *tmk_cells_name(const struct tmk_cells *cells, const char *file);

#endif
