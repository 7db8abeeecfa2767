/* SPDX-License-Identifier: MIT */
/* kit/gnuplot_word.h - quoting for foreign texts in a gnuplot script. */
#ifndef TMK_KIT_GNUPLOT_WORD_H
#define TMK_KIT_GNUPLOT_WORD_H

#include <stdio.h>

enum { TMK_GNUPLOT_TIC_BYTES = 49 }; /* gnuplot cuts a tic's label with a '%' behind these */

/* Writes `text` as a string of the script: gnuplot reads the same bytes and runs none of them. */
void tmk_gnuplot_word(FILE *script, const char *text);
/* Writes `text` as the label of a tic, in which '%' begins a format. */
void tmk_gnuplot_tic_word(FILE *script, const char *text);

#endif
