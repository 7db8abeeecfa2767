/* SPDX-License-Identifier: MIT */
/* web/url_query.h - the part of an address behind its '?': "t0=5&t1=9". */
#ifndef TMK_WEB_URL_QUERY_H
#define TMK_WEB_URL_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Find a parameter and decode it to the caller's buffer. False: it is not there, does not fit, or
 * is badly encoded. */
bool tmk_url_query_text(const char *query, const char *name, char *to, size_t room);
/* The same for a decimal number of at most 18 digits. */
bool tmk_url_query_number(const char *query, const char *name, uint64_t *ret);

#endif
